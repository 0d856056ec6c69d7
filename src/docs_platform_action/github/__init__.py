"""GitHub: which commit the platform serves, by the deployments that it has reported."""
