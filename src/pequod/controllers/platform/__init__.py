"""The platform family: ResourceGraph."""
