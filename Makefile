# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Spillway. `make help` lists the targets. Rules are written once; a new .c file in a listed
# folder needs no change here.

BUILD   ?= build
CC      ?= gcc
CLANG   ?= $(shell command -v clang-19 || command -v clang-14 || echo clang)
BPFTOOL ?= $(shell command -v bpftool || echo /usr/sbin/bpftool)
PREFIX  ?= /usr/local
V       ?= 0
Q       := $(if $(filter 1,$(V)),,@)
say      = $(if $(filter 1,$(V)),,@printf '  %-8s %s\n' $(1) $(patsubst $(CURDIR)/%,%,$(2)))

VERSION := 0.1.0
ARCH    := $(shell uname -m | sed 's/x86_64/x86/;s/aarch64/arm64/')
TRIPLET  = $(subst -pc-,-,$(shell $(CC) -dumpmachine))

WARN     := -Wall -Wextra -Werror
CPPFLAGS := -Iinclude -Iuser -I$(BUILD)/gen -D_GNU_SOURCE -DSW_VERSION='"$(VERSION)"'
CFLAGS   ?= -O2 -g
CFLAGS   += -std=gnu11 $(WARN) $(SAN)
LIBS     := -Wl,--as-needed -lbpf -lelf -lz -levent -lcurl -ljansson -lcyaml -lyaml -lzmq -lnats -lresolv -lm
BPFFLAGS := -O2 -g -std=gnu11 -target bpf -mcpu=v3 -D__TARGET_ARCH_$(ARCH) $(WARN) \
            -Wno-address-of-packed-member -Iinclude -Ibpf -isystem /usr/include/$(TRIPLET)

BPF_OBJ  := $(patsubst %.bpf.c,$(BUILD)/bpf/%.bpf.o,$(notdir $(wildcard bpf/*.bpf.c)))
SKEL     := $(BUILD)/gen/spillway.skel.h
LIB      := $(BUILD)/libspillway.a
LIB_SRC  := $(filter-out user/daemon/main.c,$(wildcard $(addprefix user/,$(addsuffix /*.c,\
              common config sources policy kernel control daemon))))
LIB_OBJ  := $(LIB_SRC:%.c=$(BUILD)/%.o)
PROGRAMS := spillwayd spillway $(basename $(notdir $(wildcard tools/*.c)))
TESTS    := $(patsubst tests/%.c,%,$(wildcard tests/unit/test_*.c tests/packet/test_*.c))
FUZZERS  := $(patsubst tests/%.c,%,$(wildcard tests/fuzz/fuzz_*.c))
BENCH    := $(addprefix $(BUILD)/tests/bench/,packets heads slots scale)
SOURCES   = $(shell find bpf user include tests tools -name '*.[ch]')
SCRIPTS   = $(shell grep -rlE '^\#!/(usr/)?bin/(env )?(ba)?sh' tests tools .ci)

# Debian 12. What it takes to build, and what the tests and the demo need besides.
DEPS_BUILD := gcc clang-19 llvm-19 bpftool libbpf-dev libelf-dev zlib1g-dev libevent-dev \
              libcurl4-openssl-dev libjansson-dev libcyaml-dev libyaml-dev libzmq3-dev \
              libmsgpack-dev libnats-dev libncurses-dev libc6-dev pkg-config
DEPS_TEST  := libcmocka-dev clang-14 clang-format-19 cppcheck shellcheck jq nginx-light haproxy curl wrk \
              hey nodejs python3 python3-requests python3-httpx python3-aiohttp python3-zmq \
              python3-msgpack nats-server etcd-server prometheus iproute2 ethtool \
              tcpdump procps openssl tmux util-linux qemu-system-x86 busybox-static kmod cpio xz-utils zstd \
              lz4 libasan8 libubsan1 chromium libclang-rt-19-dev
obj       = $(patsubst %.c,$(BUILD)/%.o,$(wildcard $(1)))

.DEFAULT_GOAL := all
.SUFFIXES:
.SECONDARY:
.DELETE_ON_ERROR:

all: $(PROGRAMS:%=$(BUILD)/%) ## build everything

help: ## list the targets
	@awk -F':.*## ' '/^[a-z-]+:.*## /{printf "  %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# ---- kernel side: each hook its own object, linked into one, one skeleton --------------------
$(BUILD)/bpf/%.bpf.o: bpf/%.bpf.c
	$(call say,CLANG,$@)
	@mkdir -p $(@D)
	$(Q)$(CLANG) $(BPFFLAGS) -MMD -MP -c $< -o $@

$(BUILD)/bpf/spillway.o: $(BPF_OBJ)
	$(call say,BPFLINK,$@)
	$(Q)$(BPFTOOL) gen object $@ $^

$(SKEL): $(BUILD)/bpf/spillway.o
	$(call say,SKEL,$@)
	@mkdir -p $(@D)
	$(Q)$(BPFTOOL) gen skeleton $< name spillway > $@

# ---- user side --------------------------------------------------------------------------------
$(BUILD)/%.o: %.c
	$(call say,CC,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) -MMD -MP -c $< -o $@

$(LIB_OBJ) $(BUILD)/user/daemon/main.o $(call obj,tests/*/*.c tests/unit/*/*.c tools/*.c): | $(SKEL)

# The status page is part of the program
$(BUILD)/user/control/web.o: $(wildcard user/control/web/*)

$(LIB): $(LIB_OBJ)
	$(call say,AR,$@)
	$(Q)rm -f $@ && ar rcs $@ $^

# Before the library: they have a kernel or a hub of their own, and the first definition counts
test_slots = $(patsubst %.c,$(BUILD)/%,$(wildcard tests/unit/test_slots_$(1)*.c))
$(call test_slots,live): $(BUILD)/tests/unit/slots/live.o
$(call test_slots,shown): $(BUILD)/tests/unit/slots/shown.o
$(call test_slots,live) $(call test_slots,shown) $(addprefix $(BUILD)/tests/unit/test_,shed tell words): \
  LDFLAGS += -Wl,--allow-multiple-definition

$(BUILD)/spillwayd: $(BUILD)/user/daemon/main.o $(LIB)
$(BUILD)/spillway: $(call obj,user/cli/*.c) $(LIB)
$(foreach t,$(wildcard tools/*.c),$(eval $(BUILD)/$(basename $(notdir $(t))): $(BUILD)/$(t:.c=.o) $(call obj,tools/lib/*.c) $(LIB)))
$(foreach t,$(TESTS),$(eval $(BUILD)/tests/$(t): $(BUILD)/tests/$(t).o $(call obj,tests/$(dir $(t))lib/*.c) $(LIB)))

$(BUILD)/spillway: LIBS += -lncursesw

# What `spillway top` shows, without a terminal
$(addprefix $(BUILD)/tests/unit/test_top_,frame keys): $(call obj,user/cli/top_*.c user/cli/canvas.c user/cli/json.c)

$(PROGRAMS:%=$(BUILD)/%):
	$(call say,LINK,$@)
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(LIBS)

$(TESTS:%=$(BUILD)/tests/%):
	$(call say,LINK,$@)
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(LIBS) -lcmocka

# With libFuzzer's main(); only `make fuzzers` builds them, as only clang can
$(FUZZERS:%=$(BUILD)/tests/%.o): CPPFLAGS += -Ibpf
$(FUZZERS:%=$(BUILD)/tests/%): %: %.o $(LIB)
	$(call say,LINK,$@)
	$(Q)$(CC) $(CFLAGS) -fsanitize=fuzzer $(LDFLAGS) -o $@ $^ $(LIBS)

# ---- programs of the tests themselves: slots in a form that can be called, and a wire that loses --
$(BUILD)/packet/%.bpf.o: tests/packet/%.bpf.c
	$(call say,CLANG,$@)
	@mkdir -p $(@D)
	$(Q)$(CLANG) $(BPFFLAGS) -MMD -MP -c $< -o $@

$(BUILD)/gen/%.skel.h: $(BUILD)/packet/%.bpf.o
	$(call say,SKEL,$@)
	@mkdir -p $(@D)
	$(Q)$(BPFTOOL) gen skeleton $< name $* > $@

$(call obj,tests/packet/*.c tests/packet/lib/*.c tests/bench/*.c): | \
  $(SKEL) $(BUILD)/gen/slots.skel.h $(BUILD)/gen/loss.skel.h

# ---- the benchmark's own programs: the fast path in a form that can be repeated ----------------
$(BUILD)/bench/%.o: tests/bench/bench.bpf.c
	$(call say,CLANG,$@)
	@mkdir -p $(@D)
	$(Q)$(CLANG) $(BPFFLAGS) -DHOOK_$* -MMD -MP -c $< -o $@

$(BUILD)/gen/bench.skel.h: $(BUILD)/bench/XDP.o $(BUILD)/bench/TC.o
	$(call say,SKEL,$@)
	@mkdir -p $(@D)
	$(Q)$(BPFTOOL) gen object $(BUILD)/bench/bench.o $^
	$(Q)$(BPFTOOL) gen skeleton $(BUILD)/bench/bench.o name bench > $@

$(BUILD)/bench/ways.o $(BUILD)/bench/heads.o: $(BUILD)/bench/%.o: tests/bench/%.bpf.c
	$(call say,CLANG,$@)
	@mkdir -p $(@D)
	$(Q)$(CLANG) $(BPFFLAGS) -MMD -MP -c $< -o $@

$(BUILD)/gen/heads.skel.h: $(BUILD)/bench/heads.o
	$(call say,SKEL,$@)
	@mkdir -p $(@D)
	$(Q)$(BPFTOOL) gen skeleton $< name heads > $@

$(BUILD)/tests/bench/%.o: CPPFLAGS += -Itests
$(call obj,tests/bench/*.c): | $(BUILD)/gen/bench.skel.h $(BUILD)/gen/heads.skel.h
$(BENCH): %: %.o $(call obj,tests/packet/lib/*.c) $(LIB)
	$(call say,LINK,$@)
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(LIBS) -lcmocka

-include $(shell find $(BUILD) -name '*.d' 2>/dev/null)

# ---- what people type --------------------------------------------------------------------------
tests: all $(TESTS:%=$(BUILD)/tests/%) ## build the tests

deps: ## install every Debian package that building and testing need
	@tools/deps $(DEPS_BUILD) $(DEPS_TEST)

demo: deps ## install, build and show the main job on a built-in scene
	@$(MAKE) --no-print-directory all
	@BUILD=$(BUILD) tools/demo

test: deps ## install, build, and pass all tests
	@$(MAKE) --no-print-directory lint
	@$(MAKE) --no-print-directory -j$$(nproc) tests
	@$(MAKE) --no-print-directory -j$$(nproc) asan
	@$(MAKE) --no-print-directory -j$$(nproc) fuzzers
	@BUILD=$(BUILD) tests/run

test-kernels: deps ## the packet tests and one real conversation on other kernels, emulated
	@$(MAKE) --no-print-directory tests
	@BUILD=$(BUILD) tests/run kernels

soak: deps ## the long modes of tests that `make test` runs in short
	@$(MAKE) --no-print-directory tests
	@BUILD=$(BUILD) tests/run soak

bench: deps ## measure, and print the numbers that docs/performance.md quotes
	@$(MAKE) --no-print-directory all $(BENCH) $(BUILD)/bench/ways.o
	@BUILD=$(BUILD) tests/bench/run

lint: ## check format, and look for mistakes that compile
	@clang-format-19 --dry-run -Werror $(SOURCES)
	@cppcheck --quiet --error-exitcode=1 --enable=warning --inline-suppr --std=c11 \
	  --library=tests/cppcheck.cfg \
	  --suppress=missingIncludeSystem -Iinclude -Iuser $(wildcard user/*/*.c tools/*.c)
	@shellcheck -S warning -e SC2154 $(SCRIPTS) # variables of a sourced file
	@tests/licences

asan: ## build programs and unit tests with address and undefined-behaviour sanitizers
	@$(MAKE) --no-print-directory BUILD=$(BUILD)-asan \
	  SAN='-fsanitize=address,undefined -fno-omit-frame-pointer' asan-targets

asan-targets: all $(patsubst %,$(BUILD)/tests/%,$(filter unit/%,$(TESTS)))

fuzzers: ## build the fuzzers with libFuzzer and sanitizers
	@$(MAKE) --no-print-directory BUILD=$(BUILD)-fuzz CC=$(CLANG) \
	  SAN='-fsanitize=fuzzer-no-link,address,undefined -fno-sanitize=alignment -fno-sanitize-recover=undefined' fuzz-targets

fuzz-targets: $(FUZZERS:%=$(BUILD)/tests/%)

install: all ## install into PREFIX, with man pages, completion and the systemd unit
	install -D -t $(DESTDIR)$(PREFIX)/sbin $(BUILD)/spillwayd
	install -D -t $(DESTDIR)$(PREFIX)/bin $(BUILD)/spillway
	install -D -m 644 -t $(DESTDIR)$(PREFIX)/share/man/man8 docs/man/*.8
	install -D -m 644 -t $(DESTDIR)$(PREFIX)/share/bash-completion/completions contrib/completion/*
	install -D -m 644 docs/spillway.example.yaml $(DESTDIR)$(PREFIX)/share/doc/spillway/spillway.example.yaml
	install -D -m 644 -t $(DESTDIR)$(PREFIX)/share/doc/spillway contrib/prometheus/* contrib/grafana/*
	sed 's|/usr/local|$(PREFIX)|' contrib/systemd/spillwayd.service | \
	  install -D -m 644 /dev/stdin $(DESTDIR)$(PREFIX)/lib/systemd/system/spillwayd.service

clean: ## remove what was built
	rm -rf $(BUILD) $(BUILD)-asan $(BUILD)-fuzz

.PHONY: all help tests deps demo test test-kernels soak bench lint asan fuzzers fuzz-targets install clean
