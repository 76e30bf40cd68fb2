"""The fault matrix and the sweeps: every attempt tells the truth."""
