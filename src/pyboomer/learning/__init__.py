"""One run of Algorithm 1: chunks of rules, watched, stopped in time, never lost."""
