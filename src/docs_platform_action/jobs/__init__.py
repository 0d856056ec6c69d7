"""Jobs: started or collected, polled until they end, several side by side."""
