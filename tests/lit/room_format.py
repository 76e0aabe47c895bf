"""A lit test format: shell tests, where a file is a test only if it has a RUN line.

Kernels and scripts that tests use may then lie beside them, without a list of exceptions.
"""

import lit.formats


class RoomTests(lit.formats.ShTest):
    def getTestsInDirectory(self, testSuite, path_in_suite, litConfig, localConfig):
        for test in super().getTestsInDirectory(testSuite, path_in_suite, litConfig, localConfig):
            with open(test.getSourcePath(), encoding="utf-8", errors="replace") as file:
                if "RUN:" in file.read():
                    yield test
