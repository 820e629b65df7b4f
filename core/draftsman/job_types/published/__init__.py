"""Descriptions of job types, which workers publish for programs without their code."""
