# Build, test and install the pt pipeline. `make help` lists the targets.
#   V=1         shows the commands
#   SANITIZE=1  builds with ASan and UBSan into build/san; with check, tests that build
ifeq ($(origin CFLAGS),undefined)
CFLAGS := -O1 -g1
FAST := -O3 -g1
endif
CPPFLAGS ?=
PREFIX ?= /usr/local
BINDIR ?= $(PREFIX)/bin
MANDIR ?= $(PREFIX)/share/man
COMPDIR ?= $(PREFIX)/share/bash-completion/completions

Q := $(if $(V),,@)
# By all CPUs, unless make was told how many.
ifeq ($(MAKELEVEL)$(filter -j% --jobserver%,$(MAKEFLAGS)),0)
MAKEFLAGS += -j$(shell nproc)
endif
B := $(if $(SANITIZE),build/san,build)
BIN := $(if $(SANITIZE),build/san/,)
WARN := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith
SAN := $(if $(SANITIZE),-fsanitize=address -fsanitize=undefined -fno-sanitize-recover=undefined \
	-fno-omit-frame-pointer)
ALL_CFLAGS := -std=c11 -D_GNU_SOURCE -I. $(CPPFLAGS) $(WARN) -fvisibility=hidden $(CFLAGS) $(SAN) -MMD -MP

# libtracecmd reads trace.dat files. Where its headers are missing, or with NO_TRACECMD=1, pt-capture is built without it.
# Debian's headers include one another by name alone. The library's symbols are weak (capture/tracecmd/library.c), which alone
# would not make the linker take a shared library.
ifndef NO_TRACECMD
TRACECMD_CFLAGS ?= $(shell pkg-config --cflags libtracecmd 2>/dev/null || \
	echo -I/usr/include/trace-cmd -I/usr/include/tracefs -I/usr/include/traceevent)
TRACECMD_LIBS ?= $(shell pkg-config --libs libtracecmd 2>/dev/null || echo -ltracecmd -ltraceevent)
ifneq ($(shell printf '\043include <trace-cmd.h>\n' | $(CC) $(TRACECMD_CFLAGS) -E - >/dev/null 2>&1 && echo found),)
TRACECMD := -DHAVE_TRACECMD $(TRACECMD_CFLAGS)
LIBS_TRACECMD := -Wl,--no-as-needed $(TRACECMD_LIBS) -Wl,--as-needed
endif
endif
$(B)/obj/capture/tracecmd/library.o $(B)/obj/capture/tracecmd/no_library.o: ALL_CFLAGS += $(TRACECMD)

# binutils' libiberty demangles C++ and Rust names. Where it is missing, or with NO_LIBIBERTY=1, pt-load is built without it.
ifndef NO_LIBIBERTY
LIBIBERTY := $(filter /%,$(shell $(CC) -print-file-name=libiberty.a))
ifneq ($(LIBIBERTY),)
$(B)/obj/export/demangle.o $(B)/tests/unit/test_demangle: ALL_CFLAGS += -DHAVE_LIBIBERTY
endif
endif
# elfutils' libdw knows the source lines of code. Where its header is missing, or with NO_LIBDW=1, pt-load is built without it.
ifndef NO_LIBDW
ifneq ($(shell printf '\043include <elfutils/libdwfl.h>\n' | $(CC) -E - >/dev/null 2>&1 && echo found),)
LIBS_LIBDW := -ldw
$(B)/obj/export/source_lines.o $(B)/obj/export/inlined_calls.o: ALL_CFLAGS += -DHAVE_LIBDW
endif
endif
# capstone says what instructions are called (pt-decode --insns, pt-query annotate). Where its header is missing, or with
# NO_CAPSTONE=1, both are built without it; its symbols are weak, too (schema/disassembler.c).
ifndef NO_CAPSTONE
CAPSTONE_CFLAGS ?= $(shell pkg-config --cflags capstone 2>/dev/null)
CAPSTONE_LIBS ?= $(shell pkg-config --libs capstone 2>/dev/null || echo -lcapstone)
ifneq ($(shell printf '\043include <capstone/capstone.h>\n' | $(CC) $(CAPSTONE_CFLAGS) -E - >/dev/null 2>&1 && echo found),)
CAPSTONE := -DHAVE_CAPSTONE $(CAPSTONE_CFLAGS)
LIBS_CAPSTONE := -Wl,--no-as-needed $(CAPSTONE_LIBS) -Wl,--as-needed
endif
endif
$(B)/obj/schema/disassembler.o: ALL_CFLAGS += $(CAPSTONE)

# libcurl reaches ClickHouse. Where its header is missing, or with NO_LIBCURL=1, pt-load and pt-query are built without it.
ifndef NO_LIBCURL
ifneq ($(shell printf '\043include <curl/curl.h>\n' | $(CC) -E - >/dev/null 2>&1 && echo found),)
LIBS_LIBCURL := -lcurl
endif
endif
$(B)/obj/schema/clickhouse/http.o $(B)/obj/schema/clickhouse/no_http.o: ALL_CFLAGS += $(if $(LIBS_LIBCURL),-DHAVE_LIBCURL)

# protobuf-c writes the formats of Perfetto and pprof (pt-query). Where its compiler or header is missing, or with
# NO_PROTOBUF_C=1, pt-query is built without it. Of queries/**/*.proto it makes C, in $(B)/proto.
ifndef NO_PROTOBUF_C
PROTOC_C ?= $(shell command -v protoc-c)
ifneq ($(and $(PROTOC_C),$(shell printf '\043include <protobuf-c/protobuf-c.h>\n' | $(CC) -E - >/dev/null 2>&1 && echo found)),)
PROTO := queries/perfetto/perfetto.proto queries/pprof.proto
PROTO_C := $(patsubst %.proto,$(B)/proto/%.pb-c.c,$(notdir $(PROTO)))
LIBS_PROTOBUF_C := -lprotobuf-c
PROTO_USERS := $(B)/obj/queries/perfetto/packets.o $(B)/obj/queries/pprof.o
$(PROTO_USERS): ALL_CFLAGS += -DHAVE_PROTOBUF_C -I$(B)/proto
endif
endif

# libmicrohttpd serves the explorer (pt-query serve). Where its header is missing, or with NO_LIBMICROHTTPD=1, pt-query is built
# without it.
ifndef NO_LIBMICROHTTPD
ifneq ($(shell printf '\043include <microhttpd.h>\n' | $(CC) -E - >/dev/null 2>&1 && echo found),)
LIBS_LIBMICROHTTPD := -lmicrohttpd
endif
endif
$(B)/obj/queries/serve/server.o $(B)/obj/queries/serve/no_server.o: ALL_CFLAGS += $(if $(LIBS_LIBMICROHTTPD),-DHAVE_LIBMICROHTTPD)

PROGRAMS := pt-capture pt-decode pt-load pt-query
# Every .c below a folder, however deep: a new file needs no line here.
sources = $(sort $(shell find $(1) -name '*.c'))
objects = $(patsubst %.c,$(B)/obj/%.o,$(call sources,$(1)))
# The stages share nothing but schema/ and the instruction classifier.
OBJ_pt-capture := $(call objects,capture) $(B)/obj/decode/insn.o
OBJ_pt-decode := $(call objects,decode)
OBJ_pt-load := $(call objects,export)
OBJ_pt-query := $(call objects,queries) $(PROTO_C:%.c=%.o)
LIBS_pt-capture := -lelf -llzma -lzstd -lz $(LIBS_TRACECMD) -lpthread
LIBS_pt-decode := $(LIBS_CAPSTONE) -lzstd -lz -lpthread
LIBS_pt-load := -lsqlite3 -lzstd -lz $(LIBS_LIBDW) $(if $(LIBS_LIBDW),-lelf) $(LIBIBERTY) $(LIBS_LIBCURL) -lpthread
LIBS_pt-query := $(LIBS_CAPSTONE) $(LIBS_PROTOBUF_C) -lsqlite3 -lzstd -lz -lm $(LIBS_LIBCURL) $(LIBS_LIBMICROHTTPD)
SCHEMA := $(B)/libschema.a
# Everything that is not a program's main: what unit tests and the tests' own tools link with.
ALL := $(B)/libpt.a
LIBS := -lsqlite3 $(LIBS_PROTOBUF_C) $(LIBS_LIBDW) -lelf -llzma -lzstd -lz $(LIBS_TRACECMD) $(LIBS_CAPSTONE) $(LIBIBERTY) $(LIBS_LIBCURL) $(LIBS_LIBMICROHTTPD) -lpthread -lm

UNIT := $(patsubst %.c,$(B)/%,$(wildcard tests/unit/test_*.c))
TOOLS := $(patsubst %.c,$(B)/%,$(wildcard tests/oracle/*.c tests/tools/*.c))
RANDOM := $(B)/tests/oracle/random_flow
FUZZ := $(sort $(patsubst tests/fuzz/fuzz_%.c,%,$(wildcard tests/fuzz/fuzz_*.c)))
REPLAY := $(FUZZ:%=$(B)/tests/fuzz/replay_%)
BENCH := $(patsubst %.c,$(B)/%,$(wildcard tests/bench/*.c))

all: $(PROGRAMS:%=$(BIN)%)

$(PROGRAMS:%=$(BIN)%): $(BIN)%: $(SCHEMA)
	@echo "  LD    $@"
	$(Q)$(CC) $(ALL_CFLAGS) $(LDFLAGS) -o $@ $(OBJ_$*) $(SCHEMA) $(LIBS_$*)
define program
$(BIN)$(1): $(OBJ_$(1))
endef
$(foreach p,$(PROGRAMS),$(eval $(call program,$(p))))

$(SCHEMA): $(call objects,schema)
$(ALL): $(filter-out $(foreach d,capture decode export queries,$(B)/obj/$d/main.o),$(call objects,schema) $(sort $(foreach p,$(PROGRAMS),$(OBJ_$(p)))))
$(B)/%.a:
	@echo "  AR    $@"
	$(Q)rm -f $@ && $(AR) rcs $@ $^

$(B)/obj/%.o: %.c | $(B)/headers
	$(if $(wildcard $(@D)),,$(shell mkdir -p $(@D)))$(info $()  CC    $<)
	$(Q)$(CC) -pipe $(ALL_CFLAGS) -c -o $@ $<
$(PROTO_USERS): $(PROTO_C)
$(B)/proto/%.pb-c.c: queries/perfetto/%.proto
	@mkdir -p $(@D)
	@echo "  PROTO $<"
	$(Q)$(PROTOC_C) --proto_path=$(<D) --c_out=$(@D) $<
$(B)/proto/%.pb-c.c: queries/%.proto
	@mkdir -p $(@D)
	@echo "  PROTO $<"
	$(Q)$(PROTOC_C) --proto_path=$(<D) --c_out=$(@D) $<
$(B)/proto/%.o: $(B)/proto/%.c
	@echo "  CC    $<"
	$(Q)$(CC) $(filter-out -Wshadow -Wmissing-prototypes,$(ALL_CFLAGS)) -I$(B)/proto -c -o $@ $<
# Where a trace's branches come by, the optimizer is worth the time that it takes. (-O3 takes 3 s for records_read.c.)
$(call objects,decode/flow decode/code decode/packet decode/output schema export): ALL_CFLAGS += $(FAST)
$(B)/obj/schema/records_read.o: ALL_CFLAGS += $(FAST:-O3=-O2)
$(BENCH): private ALL_CFLAGS += $(FAST)
# The loops that decode are a few instructions long: their speed must not depend on where they happen to lie (up to 9 %).
$(call objects,decode/flow): ALL_CFLAGS += -falign-loops=32
# SQL that is embedded with .incbin, which -MMD does not see
$(B)/obj/schema/sql_macros.o: schema/macros.sql
$(B)/obj/schema/unpack/facts.o: schema/unpack/facts.sql schema/fact_views.sql
$(call objects,export): $(wildcard schema/*.sql schema/clickhouse/*.sql)
$(call objects,queries): $(wildcard schema/*.sql queries/*.sql queries/clickhouse/*.sql queries/*.css queries/*.js queries/perfetto/*.sql queries/perf_sqlite/*.sql queries/explorer/* $(addprefix queries/report/,*.sql *.css *.html js/*.js vendor/*/*))

# A missing compiler or header is said once, with its remedy, before the compiler says it many times.
$(B)/headers:
	@mkdir -p $(@D)
	@printf '#include <%s>\n' stdio.h sqlite3.h gelf.h lzma.h zstd.h zlib.h >$@.c
	@$(CC) -E -o /dev/null $@.c 2>$@.log || { cat $@.log; \
		echo "Something to build with is missing: run scripts/deps build (or make demo, which does)." >&2; \
		exit 1; }
	@rm $@.c $@.log && touch $@

# Tests and benchmarks: a source is a program; libipt_* and zydis_* ones link with what they are named for.
$(B)/tests/%: tests/%.c $(ALL)
	@mkdir -p $(@D)
	@echo "  CCLD  $@"
	$(Q)$(CC) $(ALL_CFLAGS) $(LDFLAGS) -o $@ $< $(ALL) $(LIBS) \
		$(if $(findstring libipt,$*),-lipt) $(if $(findstring zydis,$*),-lZydis)

$(RANDOM): $(wildcard tests/oracle/random/*.[ch]) $(ALL)
	@mkdir -p $(@D)
	@echo "  CCLD  $@"
	$(Q)$(CC) $(filter-out -MMD -MP,$(ALL_CFLAGS)) $(LDFLAGS) -o $@ $(filter %.c,$^) $(ALL) $(LIBS) -lipt

$(B)/tests/fuzz/replay_%: tests/fuzz/fuzz_%.c tests/fuzz/replay.c $(ALL)
	@mkdir -p $(@D)
	@echo "  CCLD  $@"
	$(Q)$(CC) $(filter-out -MMD -MP,$(ALL_CFLAGS)) $(LDFLAGS) -o $@ $^ $(LIBS)

# Preloaded, it makes calls of a program fail (tests/faults/shim.c).
SHIM := $(B)/tests/faults/shim.so
$(SHIM): $(wildcard tests/faults/*.[ch])
	@mkdir -p $(@D)
	@echo "  CCLD  $@"
	$(Q)$(CC) $(filter-out -MMD -MP,$(ALL_CFLAGS)) -fPIC -shared -o $@ $(filter %.c,$^)

# libFuzzer: needs clang with compiler-rt. FUZZ_SECONDS each; new inputs stay in build/fuzz/NAME.corpus.
FUZZ_SECONDS ?= 600
FUZZ_CFLAGS := -std=c11 -D_GNU_SOURCE -I. -O1 -g -fsanitize=address,undefined -fno-sanitize-recover=undefined
build/fuzz/obj/%.o: %.c
	@mkdir -p $(@D)
	@echo "  CLANG $<"
	$(Q)clang $(FUZZ_CFLAGS) -fsanitize=fuzzer-no-link -MMD -MP -c -o $@ $<
FUZZED := $(filter-out $(foreach d,capture decode export,$d/main.c),$(call sources,schema capture decode export))
build/fuzz/obj/capture/tracecmd/library.o build/fuzz/obj/capture/tracecmd/no_library.o: FUZZ_CFLAGS += $(TRACECMD)
build/fuzz/obj/export/source_lines.o build/fuzz/obj/export/inlined_calls.o: FUZZ_CFLAGS += $(if $(LIBS_LIBDW),-DHAVE_LIBDW)
build/fuzz/obj/export/demangle.o: FUZZ_CFLAGS += $(if $(LIBIBERTY),-DHAVE_LIBIBERTY)
build/fuzz/obj/schema/disassembler.o: FUZZ_CFLAGS += $(CAPSTONE)
build/fuzz/obj/schema/clickhouse/http.o build/fuzz/obj/schema/clickhouse/no_http.o: FUZZ_CFLAGS += $(if $(LIBS_LIBCURL),-DHAVE_LIBCURL)
build/fuzz/libpt.a: $(FUZZED:%.c=build/fuzz/obj/%.o)
	$(Q)rm -f $@ && $(AR) rcs $@ $^
build/fuzz/fuzz_%: tests/fuzz/fuzz_%.c build/fuzz/libpt.a
	@echo "  CLANG $@"
	$(Q)clang $(FUZZ_CFLAGS) -fsanitize=fuzzer -o $@ $^ $(LIBS)
fuzz: $(FUZZ:%=fuzz-%)
fuzz-%: build/fuzz/fuzz_%
	@mkdir -p build/fuzz/$*.corpus
	tar -xzf tests/fuzz/corpus/$*.tar.gz -C build/fuzz/$*.corpus
	cd build/fuzz && ./fuzz_$* -max_total_time=$(FUZZ_SECONDS) -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 \
		$(if $(filter trace_dat,$*),-fork=1 -ignore_crashes=1 -ignore_ooms=1 -malloc_limit_mb=1000000) $*.corpus

demo:
	$(Q)scripts/demo
check:
	$(Q)scripts/deps build check
	$(Q)$(MAKE) --no-print-directory all test-programs
	$(Q)PT_BIN=$(CURDIR)/$(BIN) PT_BUILD=$(CURDIR)/$(B) tests/run.sh $(TESTS)
test-programs: $(UNIT) $(TOOLS) $(RANDOM) $(REPLAY) $(if $(SANITIZE),,$(SHIM)) $(B)/tests/bench/cputime $(B)/tests/bench/rings
# What a package build can run: they need nothing but what builds the programs (debian/rules).
unit-tests: $(UNIT)
# Each allocation, write, read, ... of each program fails in turn; and each write is the last one before a crash.
check-faults: all $(SHIM)
	$(Q)PT_BIN=$(CURDIR)/$(BIN) PT_BUILD=$(CURDIR)/$(B) tests/faults/sweep.py $(CASES)
	$(Q)PT_BIN=$(CURDIR)/$(BIN) PT_BUILD=$(CURDIR)/$(B) tests/faults/sweep.py --kills $(CASES)
	$(Q)PT_BIN=$(CURDIR)/$(BIN) tests/faults/trace_dat.py
# All that has threads under ThreadSanitizer.
check-threads:
	$(Q)$(MAKE) --no-print-directory B=build/tsan CFLAGS='-O1 -g -fsanitize=thread' BIN=build/tsan/ \
		$(patsubst %,build/tsan/tests/unit/%,test_container_threads test_ring test_hw) $(patsubst %,build/tsan/pt-%,capture decode load) \
		$(patsubst %,build/tsan/tests/tools/%,odd_calls mkscale decode_jobs)
	$(Q)tests/threads/run.sh build/tsan
# Every test with gcov's counters: the lines and branches that they reach, by folder. Slow, and into a folder of its own.
coverage:
	$(Q)$(MAKE) --no-print-directory B=build/coverage BIN=build/coverage/ CFLAGS='-O0 -g --coverage' all test-programs
	$(Q)find build/coverage -name '*.gcda' -delete; rm -rf build/coverage/counters; mkdir build/coverage/counters
	$(Q)PT_BIN=$(CURDIR)/build/coverage PT_BUILD=$(CURDIR)/build/coverage PT_COVERAGE=$(CURDIR)/build/coverage/counters \
		tests/run.sh $(TESTS); cp -r build/coverage/counters/all$(CURDIR)/build/coverage/. build/coverage && \
		scripts/coverage build/coverage/obj
# On a bare Debian of another release, in a chroot: wants root.
check-suite:
	$(Q)scripts/check-suite $(or $(SUITE),trixie)
# Once a day is enough.
check-nightly: all $(RANDOM) $(TOOLS)
	$(Q)RANDOM_PROGRAMS=10000 PT_BUILD=$(CURDIR)/$(B) tests/run.sh oracle/random.sh
	$(Q)DAMAGE_ALL=1 GROWTH_ALL=1 STACKS_ALL=1 PT_BUILD=$(CURDIR)/$(B) tests/run.sh oracle/damage.sh cli/growth.sh oracle/call_stacks.sh
# In the emulated PC with Processor Trace, when ../shared/ptbox is there; not part of check: it takes minutes.
check-ptbox:
	$(Q)scripts/deps build check ptbox
	$(Q)$(MAKE) --no-print-directory all static $(TOOLS)
	$(Q)PT_BIN=$(CURDIR)/$(BIN) PT_BUILD=$(CURDIR)/$(B) tests/run.sh $(or $(TESTS),ptbox)
# ptbox's own examples, recorded afresh by Debian's perf: half an hour. EXAMPLES='several-vms' picks, KEPT=DIR keeps.
check-ptbox-vms: all
	$(Q)scripts/deps build check ptbox
	$(Q)PT_BIN=$(CURDIR)/$(BIN) PT_BUILD=$(CURDIR)/$(B) tests/ptbox_examples.sh
bench:
	$(Q)scripts/deps build bench
	$(Q)$(MAKE) --no-print-directory all $(BENCH) $(filter $(B)/tests/tools/%,$(TOOLS))
	$(Q)PT_BIN=$(CURDIR)/$(BIN) PT_BUILD=$(CURDIR)/$(B) tests/bench/yardstick.py $(if $(SAVE),--save) $(INPUTS)
	$(Q)PT_BUILD=$(CURDIR)/$(B) tests/bench/import_perf.sh
	$(Q)PT_BUILD=$(CURDIR)/$(B) tests/bench/insns.sh
	$(Q)PT_BUILD=$(CURDIR)/$(B) tests/bench/database.sh
	$(Q)PT_BUILD=$(CURDIR)/$(B) tests/bench/perf_export.sh
	$(Q)PT_BUILD=$(CURDIR)/$(B) tests/bench/step.sh
# Instructions in place of times, for a busy machine: minutes. Here and in bench INPUTS='cc1 lua-cyc' picks, and
# SAVE=1 makes the result tests/bench/last.json, which the next ones are compared with.
bench-instructions: all $(B)/tests/bench/libipt_block
	$(Q)scripts/deps build bench check
	$(Q)PT_BIN=$(CURDIR)/$(BIN) PT_BUILD=$(CURDIR)/$(B) tests/bench/yardstick.py --instructions $(if $(SAVE),--save) $(INPUTS)
# Time and memory with 1 MB to 4 GB of AUX data, 1 to 256 streams and so on: half an hour, some GB of disk.
bench-growth: all $(B)/tests/tools/mkscale
	$(Q)PT_BIN=$(CURDIR)/$(BIN) PT_BUILD=$(CURDIR)/$(B) tests/bench/growth.py $(SERIES)
# The rings of a host with 256 CPUs, played.
bench-rings: $(B)/tests/bench/rings
	$(Q)scripts/deps build bench
	$(Q)PT_BUILD=$(CURDIR)/$(B) tests/bench/rings.sh
lint:
	$(Q)scripts/deps build lint
	$(Q)scripts/lint

# ClickHouse: 50 kills of servers and of pt-load, 30 containers through a spool folder.
check-fleet:
	$(Q)scripts/deps build check fleet
	$(Q)$(MAKE) --no-print-directory all $(TOOLS)
	$(Q)KILLS=$(or $(KILLS),50) PT_BIN=$(CURDIR)/$(BIN) PT_BUILD=$(CURDIR)/$(B) tests/run.sh $(or $(TESTS),fleet)

# What pt-query makes for browsers, in Chromium.
check-browser:
	$(Q)scripts/deps build check browser
	$(Q)$(MAKE) --no-print-directory all $(TOOLS)
	$(Q)PT_BIN=$(CURDIR)/$(BIN) PT_BUILD=$(CURDIR)/$(B) tests/run.sh $(or $(TESTS),browser)
# What other programs read, in them: Prometheus, go tool pprof, protoc with Perfetto's definitions, its trace_processor.
check-viewers:
	$(Q)scripts/deps build check browser viewers
	$(Q)$(MAKE) --no-print-directory all $(TOOLS)
	$(Q)PT_BIN=$(CURDIR)/$(BIN) PT_BUILD=$(CURDIR)/$(B) tests/run.sh $(or $(TESTS),viewers)
# Of reports: at 1400 and 500 pixels, dark, printed.
screenshots: all
	$(Q)scripts/deps build browser
	$(Q)scripts/screenshots

# Wants some GB of disk and memory; says so where there is none.
check-big: all $(B)/tests/tools/mkgrowth
	$(Q)PT_BIN=$(CURDIR)/$(BIN) PT_BUILD=$(CURDIR)/$(B) tests/big.py

# Slow: minutes for each core. What was analyzed is remembered.
analyze:
	$(Q)scripts/deps build lint
	$(Q)scripts/analyze $(FILES)

# What runs on the traced machine, with no shared library: for machines that have none of them. (SQLite's dlopen does not link so,
# and nothing is loaded for debuginfod.)
static: build/static/pt-capture build/static/pt-decode
build/static/pt-capture: build/static/debuginfod.o
build/static/debuginfod.o: capture/code/debuginfod.c
	@mkdir -p $(@D)
	@echo "  CC    $@"
	$(Q)$(CC) $(filter-out -MMD -MP,$(ALL_CFLAGS)) -DNO_DLOPEN -c -o $@ $<
build/static/%: %
	@mkdir -p $(@D)
	@echo "  LD    $@"
	$(Q)$(CC) $(ALL_CFLAGS) $(LDFLAGS) -static -o $@ $(patsubst %/debuginfod.o,build/static/debuginfod.o,$(OBJ_$*)) $(SCHEMA) $(filter-out $(LIBS_TRACECMD) $(LIBS_CAPSTONE),$(LIBS_$*)) -lz -lm -lpthread

install: all
	install -d $(DESTDIR)$(BINDIR) $(DESTDIR)$(MANDIR)/man1 $(DESTDIR)$(MANDIR)/man5 $(DESTDIR)$(COMPDIR)
	install -m 755 $(PROGRAMS:%=$(BIN)%) $(DESTDIR)$(BINDIR)
	install -m 644 scripts/completion.bash $(DESTDIR)$(COMPDIR)/pt-query
	for p in $(filter-out pt-query,$(PROGRAMS)); do ln -sf pt-query $(DESTDIR)$(COMPDIR)/$$p; done
	install -m 644 $(wildcard docs/*.1) $(DESTDIR)$(MANDIR)/man1
	install -m 644 $(wildcard docs/*.5) $(DESTDIR)$(MANDIR)/man5
uninstall:
	cd $(DESTDIR)$(BINDIR) && rm -f $(PROGRAMS)
	cd $(DESTDIR)$(COMPDIR) && rm -f $(PROGRAMS)
	cd $(DESTDIR)$(MANDIR) && rm -f $(patsubst docs/%.1,man1/%.1,$(wildcard docs/*.1)) \
		$(patsubst docs/%.5,man5/%.5,$(wildcard docs/*.5))
clean:
	rm -rf build $(PROGRAMS)
help:
	@echo "make              the four programs: $(PROGRAMS)"
	@echo "make demo         install what is missing, build, trace a real program, query the trace"
	@echo "make check        install what is missing, build, run every test (TESTS='unit cli/query' runs some)"
	@echo "make check-suite  make demo and make check on a bare Debian of another release, in a chroot: SUITE=trixie"
	@echo "make fuzz         libFuzzer on each reader ($(FUZZ)): FUZZ_SECONDS=600 each; needs clang"
	@echo "make check-nightly  10,000 random programs; each bit of a container flipped; growth of trim, export and each query; all call stacks of VMs"
	@echo "make check-faults  each allocation, write, read... of each program fails in turn; crashes: CASES='load' picks"
	@echo "make check-threads  the threads of pt-capture, pt-decode and pt-load under ThreadSanitizer"
	@echo "make check-big    4 GB of AUX data, 100,000 threads, a million mappings, a million call paths: time and memory have limits"
	@echo "make coverage     the lines and branches that the tests reach, by folder (TESTS='unit' counts some)"
	@echo "make check-ptbox-vms  ptbox's examples (VMs that migrate, scale, change...), recorded by perf, against its truth"
	@echo "make check-ptbox  captures with Processor Trace in the emulated PC of ../shared/ptbox, against its truth"
	@echo "make bench        speed against libipt and perf on ../shared, of loading and of queries; BENCH_BIG=4: of 4 GB, too"
	@echo "make bench-instructions  the same in instructions, by folder: for a busy machine. INPUTS='cc1 lua-cyc' picks"
	@echo "make bench-growth  time and memory from 1 MB to 4 GB, 1 to 256 streams, 100,000 threads...: SERIES='mb threads' picks"
	@echo "make bench-rings  how fast 256 rings are emptied, the longest wait, what is lost"
	@echo "make analyze      clang's analyzer and gcc -fanalyzer, less what is known to be false: FILES='a.c b.c' picks"
	@echo "make check-fleet  ClickHouse: loads whose server or client is killed, 50 times; a spool folder; queries against SQLite"
	@echo "make check-browser  the report in Chromium: clicked, zoomed, searched, against SQL"
	@echo "make check-viewers  Prometheus and other programs read what pt-query writes for them"
	@echo "make screenshots  pictures of reports, into build/screenshots: wants Chromium and npm"
	@echo "make lint         clang-format, clang-tidy, cppcheck, shellcheck"
	@echo "make static       pt-capture and pt-decode without shared libraries, in build/static"
	@echo "make install      into \$$(DESTDIR)\$$(PREFIX), $(DESTDIR)$(PREFIX); make uninstall removes it"
	@echo "make clean        remove what was built"
	@echo "V=1 shows commands; SANITIZE=1 builds and checks with ASan and UBSan, in build/san"

-include $(shell find $(B)/obj $(B)/tests build/fuzz -name '*.d' 2>/dev/null)
.PHONY: all demo check check-fleet check-suite check-nightly check-faults check-threads check-big coverage check-ptbox check-ptbox-vms check-browser check-viewers test-programs unit-tests bench bench-instructions bench-growth bench-rings fuzz lint analyze screenshots static \
	install uninstall clean help
.SECONDARY:
