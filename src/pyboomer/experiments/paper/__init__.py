"""The paper's evaluation: its tables and figures, its claims, and what they take to reproduce."""
