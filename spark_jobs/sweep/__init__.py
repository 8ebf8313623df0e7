"""The `sweep` job: which objects of a mirror's namespace does nobody name, and the source have no more?"""
