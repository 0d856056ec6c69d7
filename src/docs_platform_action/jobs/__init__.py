"""Jobs: started or attached to, polled until they end, several side by side."""
