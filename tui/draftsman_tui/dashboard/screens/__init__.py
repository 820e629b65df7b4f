"""Screens: tables and a single job."""
