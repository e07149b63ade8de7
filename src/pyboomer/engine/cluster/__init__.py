"""An engine whose examples are on several machines, whichever way these exchange messages."""
