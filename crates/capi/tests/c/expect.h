// Checks of the tests in C and C++: a condition that does not hold ends the program.
#ifndef EXPECT_H
#define EXPECT_H

#include <stdio.h>
#include <stdlib.h>

#define EXPECT(condition)                                                            \
  do {                                                                               \
    if (!(condition)) {                                                              \
      fprintf(stderr, "%s:%d: %s does not hold (last error: %s)\n", __FILE__, __LINE__, #condition, \
              silvics_last_error());                                                 \
      exit(1);                                                                       \
    }                                                                                \
  } while (0)

#endif
