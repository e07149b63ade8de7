"""The engines of this machine's processor: all of Algorithm 1 compiled, or its steps shared by threads."""
