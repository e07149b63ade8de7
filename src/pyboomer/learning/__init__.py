"""From data to a fitted model: data read, settings made, one run of Algorithm 1, its rules kept."""
