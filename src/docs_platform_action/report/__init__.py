"""What people and later steps see."""
