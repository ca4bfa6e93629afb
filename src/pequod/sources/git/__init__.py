"""Repositories of other people, read with the git command line and never checked out.

`GitReference` says what is wanted, `GitSource` makes a tree of it. Nothing that a repository holds
is run: no hook, filter, submodule or helper of its choosing. Nothing that a person wrote reaches a
command line before the grammar of `address` has accepted it. What a server sends is counted while
it arrives, and a child process ends with whoever waits for it.
"""
