"""The programs of a chain as objects: one file for each program, and what they have in common.

Pure: the same chain always gives the same objects, so that a difference is a change.
"""
