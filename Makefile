# The module is built by nginx's own build system; see "make help".

MODULE = ngx_http_mcp_tasks_module
BUILD  = $(CURDIR)/build

# Sources that need no HTTP server; every unit test links with all of them.
PURE_SRCS := $(shell sed -n 's,^pure[-a-z]*  *,src/,p' src/sources)
SRC_DIRS  := $(sort $(dir $(wildcard src/*.h src/*/*.h src/*/*/*.h)))

# The nginx source tree to build against; by default the distribution's
# (package nginx-dev).
NGINX_SRC =

# The tests that "make test" runs, by default all, and options for prove.
TESTS       ?=
PROVE_FLAGS ?=

# How unit tests are built; sanitizers and coverage override these.
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


# never overwrite the old file: an nginx that has it loaded would crash
.PHONY: module test-module
module:
	@tools/build-module.sh $(if $(NGINX_SRC),-s '$(NGINX_SRC)') $(BUILD)/prod
	@cmp -s $(BUILD)/prod/$(MODULE).so $(BUILD)/$(MODULE).so \
	    || cp --remove-destination $(BUILD)/prod/$(MODULE).so \
	        $(BUILD)/$(MODULE).so

test-module:
	@tools/build-module.sh -t $(BUILD)/test


.PHONY: deps deps-test deps-check
deps:  ## install missing packages needed to build
	@tools/deps.sh build

deps-test:  ## install missing packages needed to build and test
	@tools/deps.sh build test

deps-check:
	@tools/deps.sh build check


.PHONY: run
run:  ## build, and run the example in conf/; PORT=8080
	@tools/deps.sh build run
	@$(MAKE) module
	@exec tools/run.sh


.PHONY: test
test: deps-test  ## run all tests; TESTS="t/a.t", PROVE_FLAGS=-v
	@$(MAKE) module test-module NGINX_SRC=
	@$(MAKE) -j $$(nproc) unit
	@exec tools/test.sh $(BUILD)


# Tests that cover every operation and every caller that waits for one; t/late.t
# and t/late_drop.t select that store themselves.
LATE = t/announce.t t/batch.t t/cancelled.t t/gateway_call.t \
    t/gateway_cancel.t t/gateway_crash.t t/gateway_input.t t/gateway_late.t \
    t/gateway_rounds.t t/gateway_turns.t t/late.t t/late_drop.t t/legacy.t \
    t/listen.t t/poll.t t/questions.t t/resume.t t/rounds.t t/session.t \
    t/storm.t t/stream.t t/waiters.t t/worker_ask.t t/worker_claim.t \
    t/worker_wait.t

.PHONY: late
late:  ## run tests with a store that completes operations later
	@TESTS="$(LATE)" MCP_TASKS_STORE=late $(MAKE) test


.PHONY: screenshots
screenshots: deps-test  ## recreate the screenshots in docs/images
	@$(MAKE) module test-module NGINX_SRC=
	@TESTS=t/console_pictures.t MCP_TASKS_PACE=3000 tools/test.sh $(BUILD)
	@mkdir -p docs/images
	@cp $(BUILD)/pictures/*.png docs/images/


.PHONY: crash-restarts
crash-restarts: deps-test  ## kill nginx, check its store for losses; COUNT=1000
	@$(MAKE) test-module NGINX_SRC=
	@exec tools/crash-restarts.py -n $(or $(COUNT),1000) \
	    $(if $(SYNC),--sync $(SYNC)) $(if $(SEED),--seed $(SEED)) \
	    $(BUILD)/dist/nginx $(BUILD)/test/$(MODULE).so $(BUILD)/crash


.PHONY: double-crashes
double-crashes: deps-test  ## kill nginx twice in a row, check versions; COUNT=300
	@$(MAKE) test-module NGINX_SRC=
	@set -e; for sync in $(or $(SYNC),always everysec off); do \
	    tools/double-crashes.py -n $(or $(COUNT),300) --sync $$sync \
	        $(BUILD)/dist/nginx $(BUILD)/test/$(MODULE).so $(BUILD)/double; \
	done


.PHONY: kill-workers
kill-workers: deps-test  ## kill worker processes, check notifications; COUNT=3000
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
builds:  ## build as in README.md, and in 8 combinations of options
	@tools/deps.sh build builds
	@exec tools/builds.sh

builds-all:  ## build in all 512 combinations, and for 32 bits
	@tools/deps.sh build builds
	@exec tools/builds.sh -a


.PHONY: interop
interop:  ## run third-party MCP clients and tests; ONLY=sdk-legacy
	@tools/deps.sh build interop
	@$(MAKE) module NGINX_SRC=
	@exec tools/interop.sh


.PHONY: matrix asan coverage check
matrix: deps-test  ## run all tests with several nginx versions, 4 processes
	@tools/matrix.sh

asan: deps-test  ## run all tests under AddressSanitizer and UBSan
	@tools/asan.sh

coverage: deps-test  ## run all tests with gcov, show line coverage of src/
	@tools/coverage.sh

check: deps-check  ## run static analysis and style checks
	@$(MAKE) module test-module NGINX_SRC=
	@tools/check.sh


.PHONY: bench bench-plot bench-instructions bench-table bench-fanout \
        bench-redis bench-store bench-stopped
bench:  ## compare speed with nginx and others; QUICK=1, ONLY=get,list
	@tools/deps.sh build interop bench
	@$(MAKE) module test-module $(BUILD)/bench/bin/fanout NGINX_SRC=
	@exec tools/bench.sh

bench-plot:  ## update docs/ with the figures of "make bench"
	@python3 bench/report.py bench/performance.json \
	    docs/images/performance.svg docs/performance.md \
	    $(BUILD)/bench/performance/results.json

bench-instructions:  ## count instructions per request; RECORD=1
	@tools/deps.sh build instructions
	@$(MAKE) module test-module NGINX_SRC=
	@exec python3 bench/instructions.py $(BUILD)/dist/nginx \
	    $(BUILD)/$(MODULE).so $(BUILD)/test/$(MODULE).so \
	    $(BUILD)/bench/instructions bench/instructions.json \
	    $(if $(RECORD),--record)

bench-table: deps-test  ## measure time and memory of table operations
	@$(MAKE) module NGINX_SRC=
	@$(MAKE) -j $$(nproc) $(BUILD)/bench/bin/table UNIT_OUT=$(BUILD)/bench \
	    UNIT_OBJS=$(BUILD)/prod UNIT_DEFS=
	@$(BUILD)/bench/bin/table

bench-fanout:  ## compare event streams with nchan; QUICK=1
	@tools/deps.sh build bench
	@$(MAKE) module $(BUILD)/bench/bin/fanout NGINX_SRC=
	@exec python3 bench/fanout.py $(BUILD)/dist/nginx \
	    $(BUILD)/$(MODULE).so $(BUILD)/dist/nchan.so \
	    $(BUILD)/bench/bin/fanout $(BUILD)/bench/fanout

bench-stopped: deps-test  ## measure latency with a stopped process; ONLY=shared,lock
	@$(MAKE) test-module NGINX_SRC=
	@exec python3 bench/stopped.py $(if $(ONLY),--only $(ONLY)) \
	    $(BUILD)/dist/nginx $(BUILD)/test/$(MODULE).so $(BUILD)/bench/stopped

bench-redis: deps-test  ## measure the scripts of the Redis store
	@$(MAKE) test-module NGINX_SRC=
	@$(MAKE) -j $$(nproc) $(BUILD)/bench/bin/redis
	@dir=$$(mktemp -d); \
	redis-server --port 0 --unixsocket $$dir/redis.sock --save '' \
	    --dir $$dir > $$dir/log & \
	pid=$$!; trap 'kill $$pid; rm -r $$dir' EXIT; \
	while [ ! -S $$dir/redis.sock ]; do sleep 0.1; done; \
	$(BUILD)/bench/bin/redis $$dir/redis.sock

bench-store:  ## measure the cost of a store on disk; QUICK=1
	@tools/deps.sh build bench
	@$(MAKE) module $(BUILD)/bench/bin/store NGINX_SRC=
	@exec python3 -B bench/store.py $(BUILD)/dist/nginx \
	    $(BUILD)/$(MODULE).so $(BUILD)/bench/bin/store $(BUILD)/bench/store


.PHONY: install
install: module  ## install into nginx's modules directory; DESTDIR=
	@tools/install.sh '$(DESTDIR)'


# The Debian suite to build for; by default the machine's own.
SUITE =

.PHONY: deb deb-test
deb:  ## build a Debian package in build/deb; SUITE=trixie
	@tools/deps.sh deb
	@exec tools/deb.sh $(SUITE)

deb-test:  ## build the package, install, use and purge it in a chroot
	@tools/deps.sh deb
	@exec tools/deb.sh -t $(SUITE)


.PHONY: clean distclean
clean:  ## remove build results, keep downloads
	@[ ! -d build ] || find build -mindepth 1 -maxdepth 1 \
	    ! -name apt ! -name dist ! -name perl ! -name src -exec rm -rf {} +

distclean:  ## remove build/ and installed npm packages
	rm -rf build t/interop/node_modules


.PHONY: help
help:  ## show this list
	@sed -n 's/^\([a-z-]*\):.*  ## \(.*\)/  make \1|\2/p' Makefile \
	    | awk -F'|' '{ printf "%-20s %s\n", $$1, $$2 }'


# Unit tests: t/unit/NAME.c is built as the program NAME; t/unit/lib*.c are
# linked into each.  nginx's own sources are linked from an archive, so that a
# test contains only those that it uses.

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

# nginx's headers are system headers: our warnings do not apply to them
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

# these files contain the flags, so the objects depend on them
$(UNIT_ALL_O) $(UNIT_NGX_O): Makefile $(UNIT_OBJS)/configured

$(UNIT_OUT)/%: $(UNIT_OUT)/obj/t/unit/%.o $(UNIT_O) $(UNIT_LIB)
	@$(CC) $(UNIT_CFLAGS) -o $@ $^ $(UNIT_LIBS) -lsqlite3 \
	    $(if $(filter %/schema,$@),-lpcre2-8) \
	    $(if $(filter %/redis_claim,$@),-lhiredis)

$(BUILD)/bench/bin/%: $(UNIT_OUT)/obj/bench/%.o $(UNIT_O) $(UNIT_LIB)
	@mkdir -p $(@D)
	@$(CC) $(UNIT_CFLAGS) -o $@ $^ $(UNIT_LIBS) -lsqlite3 \
	    $(if $(filter %/redis,$@),-lhiredis)

# the scripts as in the module
REDIS_C = $(UNIT_OUT)/obj/redis/ngx_mcp_redis_scripts.c
REDIS_O = $(REDIS_C:.c=.o)

$(UNIT_OUT)/redis_claim $(BUILD)/bench/bin/redis: $(REDIS_O)

$(REDIS_C): src/store/redis/embed.sh $(wildcard src/store/redis/lua/*.lua)
	@sh src/store/redis/embed.sh $@

$(REDIS_O): $(REDIS_C) Makefile $(UNIT_OBJS)/configured
	@$(UNIT_CC) $(UNIT_CFLAGS) $(UNIT_WARN) $(UNIT_INCS) -c -o $@ $<

# preloaded into nginx; built without nginx and without sanitizers
$(UNIT_OUT)/lib/%.so: t/lib/%.c Makefile
	@mkdir -p $(@D)
	@$(CC) -std=gnu99 -g -O2 -U_FORTIFY_SOURCE $(UNIT_WARN) -fPIC -shared \
	    -o $@ $< -ldl -lpthread

# these do not use nginx sources
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
