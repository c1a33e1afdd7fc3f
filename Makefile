# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Spillway. `make help` lists the targets. Rules are written once; a new .c file in a listed
# folder needs no change here.

BUILD   ?= build
CC      ?= gcc
CLANG   ?= $(firstword $(foreach c,clang-19 clang-16 clang-14 clang,$(if $(shell command -v $(c)),$(c))))
BPFTOOL ?= $(firstword $(wildcard /usr/sbin/bpftool) bpftool)
PREFIX  ?= /usr/local
V       ?= 0
Q       := $(if $(filter 1,$(V)),,@)
say      = $(if $(filter 1,$(V)),,@printf '  %-8s %s\n' $(1) $(patsubst $(CURDIR)/%,%,$(2)))

VERSION := 0.1.0
ARCH    := $(shell uname -m | sed 's/x86_64/x86/;s/aarch64/arm64/')
TRIPLET := $(shell $(CC) -print-multiarch 2>/dev/null)

WARN     := -Wall -Wextra -Werror
CPPFLAGS := -Iinclude -Iuser -I$(BUILD)/gen -D_GNU_SOURCE -DSW_VERSION='"$(VERSION)"'
CFLAGS   ?= -O2 -g
CFLAGS   += -std=gnu11 $(WARN) $(SAN)
LIBS     := -lbpf -lelf -lz -levent -lcurl -ljansson -lcyaml -lyaml -lm
BPFFLAGS := -O2 -g -std=gnu11 -target bpf -mcpu=v3 -D__TARGET_ARCH_$(ARCH) $(WARN) \
            -Wno-address-of-packed-member -Iinclude -Ibpf -isystem /usr/include/$(TRIPLET)

BPF_OBJ  := $(patsubst %.bpf.c,$(BUILD)/bpf/%.bpf.o,$(notdir $(wildcard bpf/*.bpf.c)))
SKEL     := $(BUILD)/gen/spillway.skel.h
LIB      := $(BUILD)/libspillway.a
LIB_SRC  := $(wildcard $(addprefix user/,$(addsuffix /*.c,common config sources policy kernel control)))
LIB_OBJ  := $(LIB_SRC:%.c=$(BUILD)/%.o)
PROGRAMS := spillwayd spillway $(basename $(notdir $(wildcard tools/*.c)))
TESTS    := $(patsubst tests/%.c,%,$(wildcard tests/unit/test_*.c tests/packet/test_*.c))
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

$(LIB_OBJ) $(call obj,user/daemon/*.c) $(call obj,tests/*/*.c) $(call obj,tools/*.c): | $(SKEL)

$(LIB): $(LIB_OBJ)
	$(call say,AR,$@)
	$(Q)rm -f $@ && ar rcs $@ $^

$(BUILD)/spillwayd: $(call obj,user/daemon/*.c) $(LIB)
$(BUILD)/spillway: $(call obj,user/cli/*.c) $(LIB)
$(foreach t,$(wildcard tools/*.c),$(eval $(BUILD)/$(basename $(notdir $(t))): $(BUILD)/$(t:.c=.o) $(call obj,tools/lib/*.c) $(LIB)))
$(foreach t,$(TESTS),$(eval $(BUILD)/tests/$(t): $(BUILD)/tests/$(t).o $(call obj,tests/$(dir $(t))lib/*.c) $(LIB)))

$(PROGRAMS:%=$(BUILD)/%):
	$(call say,LINK,$@)
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(LIBS)

$(TESTS:%=$(BUILD)/tests/%):
	$(call say,LINK,$@)
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(LIBS) -lcmocka

-include $(shell find $(BUILD) -name '*.d' 2>/dev/null)

asan: ## build with address and undefined-behaviour sanitizers into build-asan
	$(MAKE) BUILD=$(BUILD)-asan SAN='-fsanitize=address,undefined -fno-omit-frame-pointer' all

clean: ## remove what was built
	rm -rf $(BUILD) $(BUILD)-asan

.PHONY: all help asan clean
