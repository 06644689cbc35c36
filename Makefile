# Build, test and install the pt pipeline. `make help` lists the targets.
CC ?= cc
CFLAGS ?= -O2 -g
B := build
WARN := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith
ALL_CFLAGS := -std=c11 -D_GNU_SOURCE -I. $(WARN) $(CFLAGS) -MMD -MP
LIBS := -lsqlite3 -lelf -lzstd -lz -lpthread -lm
Q := $(if $(V),,@)

PROGRAMS := pt-capture pt-decode pt-load pt-query
obj = $(patsubst %.c,$(B)/%.o,$(1))
SCHEMA := $(call obj,$(wildcard schema/*.c))
CAPTURE := $(call obj,$(wildcard capture/*.c)) $(B)/decode/insn.o
DECODE := $(call obj,$(wildcard decode/*.c))
EXPORT := $(call obj,$(wildcard export/*.c))
QUERIES := $(call obj,$(wildcard queries/*.c))

all: $(PROGRAMS)
pt-capture: $(CAPTURE) $(SCHEMA)
pt-decode: $(DECODE) $(SCHEMA)
pt-load: $(EXPORT) $(SCHEMA)
pt-query: $(QUERIES) $(SCHEMA)
$(PROGRAMS):
	@echo "  LD  $@"
	$(Q)$(CC) $(ALL_CFLAGS) $(LDFLAGS) -o $@ $(filter %.o,$^) $(LIBS)
$(B)/%.o: %.c
	@mkdir -p $(@D)
	@echo "  CC  $<"
	$(Q)$(CC) $(ALL_CFLAGS) -c -o $@ $<
clean:
	rm -rf $(B) $(PROGRAMS)
-include $(shell find $(B) -name '*.d' 2>/dev/null)
.PHONY: all clean
