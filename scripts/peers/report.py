"""The figures as a table."""


class Page:
    def __init__(self, run, versions):
        self.run, self.versions = run, versions

    def table(self):
        return str(self.run.found)
