# The module is built by nginx's own build system; see "make help".

MODULE = ngx_http_mcp_tasks_module
BUILD  = $(CURDIR)/build

# Sources that need no HTTP server: each unit test links with all of them.
PURE_SRCS := $(shell sed -n 's,^pure[-a-z]*  *,src/,p' src/sources)
SRC_DIRS  := $(sort $(dir $(wildcard src/*.h src/*/*.h src/*/*/*.h)))

# Against which nginx: by default the distribution's (package nginx-dev).
NGINX_SRC =

# What "make test" runs, by default all of it, and options for prove.
TESTS       ?=
PROVE_FLAGS ?=

# What the unit tests are built with; sanitizers and coverage override these.
UNIT_OUT    = $(BUILD)/unit
UNIT_TREE   = $(BUILD)/dist/orig
UNIT_OBJS   = $(BUILD)/test
UNIT_CFLAGS = -g -O2
UNIT_DEFS   = -DNGX_MCP_TEST=1
UNIT_LIBS   ?=

SHELL = /bin/bash
MAKEFLAGS += --no-print-directory

export TESTS PROVE_FLAGS


.PHONY: all
all: module  ## build the module (the default)


# not over the old file: an nginx that runs with it would crash
.PHONY: module test-module
module:
	@tools/build-module.sh $(if $(NGINX_SRC),-s '$(NGINX_SRC)') $(BUILD)/prod
	@cmp -s $(BUILD)/prod/$(MODULE).so $(BUILD)/$(MODULE).so \
	    || cp --remove-destination $(BUILD)/prod/$(MODULE).so \
	        $(BUILD)/$(MODULE).so

test-module:
	@tools/build-module.sh -t $(BUILD)/test


.PHONY: deps deps-test deps-check
deps:  ## install what building needs, if it is missing
	@tools/deps.sh build

deps-test:  ## the same for testing
	@tools/deps.sh build test

deps-check:
	@tools/deps.sh build check


.PHONY: run
run:  ## build, then run the example in conf/; PORT=8080
	@tools/deps.sh build run
	@$(MAKE) module
	@exec tools/run.sh


.PHONY: test
test: deps-test  ## unit tests and suites; TESTS="t/a.t", PROVE_FLAGS=-v
	@$(MAKE) module test-module NGINX_SRC=
	@$(MAKE) -j $$(nproc) unit
	@exec tools/test.sh $(BUILD)


# Those that reach every operation and everybody who waits for one; t/late.t and
# t/late_drop.t choose that store themselves.
LATE = t/announce.t t/gateway_call.t t/gateway_cancel.t t/gateway_crash.t \
    t/gateway_input.t t/gateway_late.t t/gateway_rounds.t t/gateway_turns.t \
    t/late.t t/late_drop.t t/legacy.t t/listen.t t/poll.t t/questions.t t/rounds.t \
    t/session.t t/stream.t t/waiters.t t/worker_ask.t t/worker_claim.t \
    t/worker_wait.t

.PHONY: late
late:  ## tests with a store that does and answers everything later
	@TESTS="$(LATE)" MCP_TASKS_STORE=late $(MAKE) test


.PHONY: screenshots
screenshots: deps-test  ## make the pictures in docs/images anew
	@$(MAKE) module test-module NGINX_SRC=
	@TESTS=t/console_pictures.t MCP_TASKS_PACE=3000 tools/test.sh $(BUILD)
	@mkdir -p docs/images
	@cp $(BUILD)/pictures/*.png docs/images/


.PHONY: crash-restarts
crash-restarts: deps-test  ## kill nginx, see what its store has; COUNT=1000
	@$(MAKE) test-module NGINX_SRC=
	@exec tools/crash-restarts.py -n $(or $(COUNT),1000) \
	    $(if $(SYNC),--sync $(SYNC)) $(if $(SEED),--seed $(SEED)) \
	    $(BUILD)/dist/nginx $(BUILD)/test/$(MODULE).so $(BUILD)/crash


.PHONY: double-crashes
double-crashes: deps-test  ## kill nginx twice in a row; COUNT=300
	@$(MAKE) test-module NGINX_SRC=
	@set -e; for sync in $(or $(SYNC),always everysec off); do \
	    tools/double-crashes.py -n $(or $(COUNT),300) --sync $$sync \
	        $(BUILD)/dist/nginx $(BUILD)/test/$(MODULE).so $(BUILD)/double; \
	done


.PHONY: kill-workers
kill-workers: deps-test  ## kill processes, see what sessions are told; COUNT=3000
	@$(MAKE) test-module NGINX_SRC=
	@exec tools/kill-workers.py -n $(or $(COUNT),3000) \
	    $(if $(SEED),--seed $(SEED)) \
	    $(BUILD)/dist/nginx $(BUILD)/test/$(MODULE).so $(BUILD)/kill


.PHONY: endurance
endurance: deps-test  ## 7,000 waiters, kills, reloads; WAITERS=, SECONDS=, KILLS=
	@$(MAKE) test-module NGINX_SRC=
	@tools/endurance.py storm --waiters $(or $(WAITERS),7000) \
	    --seconds $(or $(SECONDS),1800) --kills $(or $(KILLS),1) \
	    --reload-every $(or $(RELOAD_EVERY),10) --life 5 25 --limit 15 \
	    --ttl 120 \
	    $(BUILD)/dist/nginx $(BUILD)/test/$(MODULE).so $(BUILD)/endurance
	@tools/endurance.py reloads --waiters $(or $(WAITERS),1000) \
	    --reloads $(or $(RELOADS),200) --load $(or $(LOAD),10) \
	    $(BUILD)/dist/nginx $(BUILD)/test/$(MODULE).so $(BUILD)/endurance


.PHONY: builds builds-all
builds:  ## build as README.md says, and in 8 combinations of options
	@tools/deps.sh build builds
	@exec tools/builds.sh

builds-all:  ## the same in all 256 combinations, and for 32 bits
	@tools/deps.sh build builds
	@exec tools/builds.sh -a


.PHONY: interop
interop:  ## other people's MCP clients and tests; ONLY=sdk-legacy
	@tools/deps.sh build interop
	@$(MAKE) module NGINX_SRC=
	@exec tools/interop.sh


.PHONY: matrix asan coverage check
matrix: deps-test  ## the tests with several nginx versions, 4 workers
	@tools/matrix.sh

asan: deps-test  ## the tests under AddressSanitizer and UBSan
	@tools/asan.sh

coverage: deps-test  ## the tests with gcov: line coverage of src/
	@tools/coverage.sh

check: deps-check  ## static analysis and style
	@$(MAKE) module test-module NGINX_SRC=
	@tools/check.sh


.PHONY: bench bench-plot bench-instructions bench-table bench-fanout \
        bench-store bench-stopped
bench:  ## how fast it is, beside nginx and others; QUICK=1, ONLY=get,list
	@tools/deps.sh build interop bench
	@$(MAKE) module test-module $(BUILD)/bench/bin/fanout NGINX_SRC=
	@exec tools/bench.sh

bench-plot:  ## put what "make bench" has measured into docs/
	@python3 bench/report.py $(BUILD)/bench/performance/results.json \
	    docs/images/performance.svg docs/performance.md

bench-instructions:  ## instructions for a request; RECORD=1
	@tools/deps.sh build instructions
	@$(MAKE) module test-module NGINX_SRC=
	@exec python3 bench/instructions.py $(BUILD)/dist/nginx \
	    $(BUILD)/$(MODULE).so $(BUILD)/test/$(MODULE).so \
	    $(BUILD)/bench/instructions bench/instructions.json \
	    $(if $(RECORD),--record)

bench-table: deps-test  ## what the table's operations cost, in time and memory
	@$(MAKE) module NGINX_SRC=
	@$(MAKE) -j $$(nproc) $(BUILD)/bench/bin/table UNIT_OUT=$(BUILD)/bench \
	    UNIT_OBJS=$(BUILD)/prod UNIT_DEFS=
	@$(BUILD)/bench/bin/table

bench-fanout:  ## event streams with many readers, beside nchan; QUICK=1
	@tools/deps.sh build bench
	@$(MAKE) module $(BUILD)/bench/bin/fanout NGINX_SRC=
	@exec python3 bench/fanout.py $(BUILD)/dist/nginx \
	    $(BUILD)/$(MODULE).so $(BUILD)/dist/nchan.so \
	    $(BUILD)/bench/bin/fanout $(BUILD)/bench/fanout

bench-stopped: deps-test  ## requests while a process is stopped; ONLY=shared,lock
	@$(MAKE) test-module NGINX_SRC=
	@exec python3 bench/stopped.py $(if $(ONLY),--only $(ONLY)) \
	    $(BUILD)/dist/nginx $(BUILD)/test/$(MODULE).so $(BUILD)/bench/stopped

bench-store:  ## what a store on disk costs, beside SQLite alone; QUICK=1
	@tools/deps.sh build bench
	@$(MAKE) module $(BUILD)/bench/bin/store NGINX_SRC=
	@exec python3 -B bench/store.py $(BUILD)/dist/nginx \
	    $(BUILD)/$(MODULE).so $(BUILD)/bench/bin/store $(BUILD)/bench/store


.PHONY: install
install: module  ## install into nginx's modules directory; DESTDIR=
	@tools/install.sh '$(DESTDIR)'


# For which Debian: by default the machine's own.
SUITE =

.PHONY: deb deb-test
deb:  ## build a Debian package in build/deb; SUITE=trixie
	@tools/deps.sh deb
	@exec tools/deb.sh $(SUITE)

deb-test:  ## and install, use and purge it in a throw-away system
	@tools/deps.sh deb
	@exec tools/deb.sh -t $(SUITE)


.PHONY: clean distclean
clean:  ## remove what was built, and keep what was downloaded
	@[ ! -d build ] || find build -mindepth 1 -maxdepth 1 \
	    ! -name apt ! -name dist ! -name perl ! -name src -exec rm -rf {} +

distclean:  ## remove build/ and what npm has installed
	rm -rf build t/interop/node_modules


.PHONY: help
help:  ## this list
	@sed -n 's/^\([a-z-]*\):.*  ## \(.*\)/  make \1|\2/p' Makefile \
	    | awk -F'|' '{ printf "%-20s %s\n", $$1, $$2 }'


# Unit tests: t/unit/NAME.c becomes a program of that name; t/unit/lib*.c are
# linked into each.  nginx's own sources go through an archive, so that a test
# takes only those that it uses.

UNIT_NAMES = $(filter-out lib%,$(basename $(notdir $(wildcard t/unit/*.c))))
UNIT_NGX   = core/ngx_array core/ngx_buf core/ngx_crc32 core/ngx_hash \
             core/ngx_list core/ngx_md5 core/ngx_murmurhash core/ngx_palloc \
             core/ngx_parse core/ngx_queue core/ngx_radix_tree \
             core/ngx_rbtree core/ngx_sha1 core/ngx_shmtx core/ngx_slab \
             core/ngx_string os/unix/ngx_alloc os/unix/ngx_shmem

UNIT_PROGS = $(UNIT_NAMES:%=$(UNIT_OUT)/%)
UNIT_LIB   = $(UNIT_OUT)/obj/libngx.a
UNIT_SRCS  = $(wildcard t/unit/*.c) $(PURE_SRCS)
UNIT_NGX_O = $(UNIT_NGX:%=$(UNIT_OUT)/obj/nginx/%.o)
UNIT_ALL_O = $(UNIT_SRCS:%.c=$(UNIT_OUT)/obj/%.o)
UNIT_O     = $(PURE_SRCS:%.c=$(UNIT_OUT)/obj/%.o) \
             $(patsubst %.c,$(UNIT_OUT)/obj/%.o,$(wildcard t/unit/lib*.c))

# nginx's headers are not held to our warnings
UNIT_INCS  = $(SRC_DIRS:%/=-I%) -It/unit \
             $(patsubst %,-isystem $(UNIT_TREE)/src/%, \
                 core event event/modules event/quic os/unix) \
             -isystem $(UNIT_OBJS)
UNIT_WARN  = -Wall -Wextra -Wno-unused-parameter -Werror
UNIT_CC    = $(CC) -std=gnu99 -MMD -MP

UNIT_NGX_CFLAGS = $(UNIT_CFLAGS)

.PHONY: unit
unit: $(UNIT_PROGS) $(UNIT_OUT)/lib/faults.so $(UNIT_OUT)/lib/clock.so
	@:

.SECONDARY: $(UNIT_ALL_O) $(UNIT_NGX_O)
.PRECIOUS: $(UNIT_OUT)/obj/bench/%.o

# the flags are in these files, so the objects depend upon them
$(UNIT_ALL_O) $(UNIT_NGX_O): Makefile $(UNIT_OBJS)/configured

$(UNIT_OUT)/%: $(UNIT_OUT)/obj/t/unit/%.o $(UNIT_O) $(UNIT_LIB)
	@$(CC) $(UNIT_CFLAGS) -o $@ $^ $(UNIT_LIBS) -lsqlite3

$(BUILD)/bench/bin/%: $(UNIT_OUT)/obj/bench/%.o $(UNIT_O) $(UNIT_LIB)
	@mkdir -p $(@D)
	@$(CC) $(UNIT_CFLAGS) -o $@ $^ $(UNIT_LIBS) -lsqlite3

# preloaded into nginx, it needs neither nginx nor sanitizers
$(UNIT_OUT)/lib/%.so: t/lib/%.c Makefile
	@mkdir -p $(@D)
	@$(CC) -std=gnu99 -g -O2 -U_FORTIFY_SOURCE $(UNIT_WARN) -fPIC -shared \
	    -o $@ $< -ldl -lpthread

# these need nothing of nginx
$(BUILD)/bench/bin/fanout $(BUILD)/bench/bin/store: \
    $(BUILD)/bench/bin/%: bench/%.c Makefile
	@mkdir -p $(@D)
	@$(CC) -std=gnu99 $(UNIT_CFLAGS) $(UNIT_WARN) -o $@ $< \
	    $(if $(filter %/store,$@),-lsqlite3)

$(UNIT_OUT)/obj/nginx/%.o: $(UNIT_TREE)/src/%.c
	@mkdir -p $(@D)
	@$(UNIT_CC) $(UNIT_NGX_CFLAGS) -w $(UNIT_INCS) -c -o $@ $<

$(UNIT_OUT)/obj/%.o: %.c
	@mkdir -p $(@D)
	@$(UNIT_CC) $(UNIT_CFLAGS) $(UNIT_WARN) $(UNIT_DEFS) \
	    $(UNIT_INCS) -c -o $@ $<

$(UNIT_LIB): $(UNIT_NGX_O)
	@rm -f $@
	@$(AR) rcs $@ $^

-include $(UNIT_ALL_O:.o=.d) $(UNIT_NGX_O:.o=.d)
