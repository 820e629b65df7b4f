"""Entities as both front ends show and use them."""
