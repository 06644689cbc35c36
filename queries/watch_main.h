/* watch_main.h - the command line of `pt-query watch`. */
#ifndef QUERIES_WATCH_MAIN_H
#define QUERIES_WATCH_MAIN_H

/* argv[0] is "watch". Its exit status. */
int watch_main(int argc, char **argv);

#endif
