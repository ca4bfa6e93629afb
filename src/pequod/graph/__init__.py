"""The engine: it brings the objects of a graph into being, keeps them so, and takes them away.

It knows objects, never our kinds. What decides is pure and neither awaits nor asks for the time:
`model`, `dag`, `foundations`, `values`, `desired`, `fields`, `child`, `readiness`, `kstatus`,
`advance`, `inventory`, `prune`, `reach`, `adopt`, `ownership`, `differences`, `problems`,
`misread`. What awaits carries decisions out: `executor` and `removal`, with `applying`, `takeover`,
`rehearsal`, `filling`, `children`, `access` and `probes` as their hands; `planning`, `leftovers`
and `foreseen` foretell what these would do.
Nothing here waits for an object to become ready: a pass ends, and what is watched wakes the next
one.
"""
