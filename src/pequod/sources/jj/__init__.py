"""Jujutsu: which commit a change id or a bookmark means, in a local repository or a git remote.

A reader, and nothing but: no operation is added to a repository, no working copy is looked at, no
configuration of a repository is believed. What the files hold is read from the git repository
behind it, by `sources.git`.
"""
