/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The configuration, checked: what YAML and command line both become. Nothing after this asks where
 * a value came from. All strings are owned by the struct and freed by sw_config_free(). */
#ifndef SPILLWAY_CONFIG_H
#define SPILLWAY_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"
#include "policy/answer.h"
#include "policy/busy.h"
#include "sources/engine.h"
#include <spillway/abi.h>

#define SW_DEFAULT_CONTROL "/run/spillway/control.sock"

enum sw_attach { SW_ATTACH_AUTO, SW_ATTACH_XDP, SW_ATTACH_XDP_GENERIC, SW_ATTACH_TC };

struct sw_cidr {
	uint8_t addr[16]; /* IPv4 as ::ffff:a.b.c.d, network order */
	uint8_t bits;	  /* 0..128; IPv4: 96 + its own */
};

struct sw_source_conf { /* where one worker's load is read */
	char *url;
	enum sw_engine engine;
	struct sw_engine_hints hints;
	unsigned period_ms, timeout_ms;
	char *bearer_token_file, *ca_file, *netns;
	bool insecure;
};

enum sw_store { SW_STORE_NONE, SW_STORE_ETCD, SW_STORE_FILE };

/* NVIDIA Dynamo's membership and event plane: which workers there are, and their live load. */
struct sw_dynamo_conf {
	enum sw_store store; /* where instances, model cards and event channels are registered */
	char **etcd;	     /* base URLs of the members' JSON gateways, tried in turn */
	size_t n_etcd;
	char *etcd_user, *etcd_password_file, *etcd_ca_file;
	char *store_path; /* directory of the file store */
	char **zmq;	  /* publishers' or brokers' endpoints, "tcp://HOST:PORT" or "ipc://PATH" */
	size_t n_zmq;
	bool zmq_broker; /* those are brokers: topics are whole subjects, events come repeatedly */
	char **nats;	 /* servers, "nats://HOST:PORT" */
	size_t n_nats;
	char *nats_credentials_file;
};

/* Workers of a pool that Dynamo's membership tells. NULL: any. */
struct sw_discover_conf {
	char *namespace, *component, *endpoint;
};

struct sw_endpoint {
	uint8_t addr[16]; /* IPv4 as ::ffff:a.b.c.d */
	uint16_t port;	  /* 0: not given */
};

struct sw_worker_conf {
	char *name; /* defaults to host:port of the URL, or to the address */
	uint32_t start_rank;
	int32_t dp_size;		/* -1: not known */
	struct sw_source_conf source;	/* url NULL: its load is not scraped; others may tell it */
	bool has_worker_id, discovered; /* membership gave it */
	uint64_t worker_id;		/* Dynamo's, by which its event plane knows it */
	struct sw_endpoint at; /* where it takes requests; of the URL when that has an IP */
	double share;	       /* of its slots that this host may use, 0 < share <= 1; 1.0 */
	bool drain;	       /* no new connections */
	uint64_t engine_limit, queue_limit; /* N and Q; N 0: no cap */
};

enum sw_steer_by {
	SW_STEER_NONE,	  /* guard only */
	SW_STEER_CONNECT, /* routers' connections to a virtual address */
	SW_STEER_LOCAL,	  /* clients' connections to a listener, to servers on this host */
};

enum sw_count_by { SW_COUNT_AUTO, SW_COUNT_CONNECTIONS, SW_COUNT_REPORTS };

struct sw_steer_conf {
	enum sw_steer_by by;
	struct sw_endpoint *virtuals; /* connect */
	size_t n_virtuals;
	char *cgroup;	 /* "/path", "pid:N", "unit:NAME"; the routers' (connect, required) or the
			  * servers' (NULL: all of the host) */
	char *netns;	 /* connect: the routers' network namespace; NULL: the daemon's own */
	bool refuse;	 /* connect: nothing free makes connect() fail, else our answer comes */
	int error;	 /* positive errno for that, default ECONNREFUSED */
	bool close_idle; /* idle upstream connections to busy workers are closed */
	unsigned idle_close_after_ms; /* default 1 */
	enum sw_count_by count;	      /* never AUTO after the check: CONNECTIONS where steered;
				       * REPORTS also where there is no cap, and nothing to count */
	unsigned report_lag_ms;	      /* default 1000, with SW_COUNT_REPORTS */
};

struct sw_pool_conf {
	char *name;
	char *model;			   /* what it serves; its name unless given */
	struct sw_discover_conf *discover; /* NULL: `workers` are all there are */
	struct sw_limits limits;
	struct sw_ageing ageing;
	struct sw_answer_spec answer; /* body[] strings owned here */
	struct sw_steer_conf steer;
	bool observe;
	struct sw_worker_conf *workers;
	size_t n_workers;
};

struct sw_path_conf {
	enum sw_method method;
	char *path; /* may hold one {name} */
	enum sw_path_action action;
	enum sw_family family;
	enum sw_api_endpoint endpoint;
};

enum sw_intercept {
	SW_INTERCEPT_NEW,	  /* requests on new connections are shed */
	SW_INTERCEPT_ESTABLISHED, /* on connections that the kernel has; new ones are let in */
	SW_INTERCEPT_BOTH,
	SW_INTERCEPT_AUTO, /* BOTH where new connections can be handed over, else ESTABLISHED */
};

struct sw_listener_conf {
	uint8_t addr[16]; /* all zero: any */
	bool v4, v6;	  /* families that it covers: 0.0.0.0 v4, [::] both, one address its own */
	uint16_t port;
	size_t pool; /* index into pools */
	char *netns; /* path or "pid:N"; NULL: the daemon's own */
	bool all_paths;
	struct sw_path_conf *paths; /* complete: built-in ones, the engine's, the operator's last */
	size_t n_paths;
	struct sw_cidr *exempt;
	size_t n_exempt;
	uint32_t syn_rate;	     /* default 50000 */
	enum sw_intercept intercept; /* default AUTO */
};

struct sw_config {
	char *file; /* NULL: command line only */
	char *text; /* what was in it, for sw_config_with() */
	size_t text_size;
	char **interfaces;
	size_t n_interfaces;
	enum sw_attach attach;
	char *control;			/* unix socket path */
	struct sw_endpoint control_tcp; /* port 0: the control interface is not on TCP */
	char *control_token_file;	/* of whoever asks over TCP; given if that is */
	char *state_file;		/* thresholds set over the API; NULL: not kept */
	struct sw_dynamo_conf dynamo;
	char *pin_root;			    /* default /sys/fs/bpf/spillway */
	unsigned heartbeat_ms, deadline_ms; /* default 200, 2000 */
	unsigned established_flows; /* followed and translated connections of a namespace, at most;
				     * default SW_DEFAULT_FLOWS */
	enum sw_level log_level;
	struct sw_pool_conf *pools;
	size_t n_pools;
	struct sw_listener_conf *listeners;
	size_t n_listeners;
};

enum sw_args_result { SW_ARGS_RUN, SW_ARGS_EXIT, SW_ARGS_ERROR, SW_ARGS_REMOVE };

/* Reads spillwayd's command line and, with --config, the file. --help and --version print and give
 * SW_ARGS_EXIT; --check-config reads, prints "ok" or the errors, and exits. Flags and a file
 * exclude each other except --log-level and --control. --remove gives SW_ARGS_REMOVE; then
 * `pin_root` and `log_level` are all that may be relied on. */
enum sw_args_result sw_config_from_args(int argc, char **argv, struct sw_config **out,
					struct sw_error *err);

/* Reads a YAML file. On failure *out is untouched and the error is "FILE:LINE: FIELD: what is
 * wrong, what is allowed". Warnings (status outside 400..599, long answers) are logged. */
int sw_config_load(const char *path, struct sw_config **out, struct sw_error *err);

/* A worker that the file does not have. */
struct sw_added_worker {
	const char *pool, *name;
	uint64_t worker_id;
	const char *address;		/* NULL: not known */
	uint64_t kv_total, max_batched; /* 0: not known */
	uint32_t start_rank;
	int32_t dp_size; /* -1: not known */
};

/* The same configuration, from the text of its file, with workers added to its pools as discovered
 * ones. They have to keep to the same rules; warnings are not logged again. */
int sw_config_with(const struct sw_config *c, const struct sw_added_worker *added, size_t n,
		   struct sw_config **out, struct sw_error *err);

void sw_config_free(struct sw_config *c);

/* Parses "ADDR:PORT", "[ADDR6]:PORT" or "PORT" (any address, both families). -EINVAL. */
int sw_parse_listener(const char *text, uint8_t addr[16], bool *v4, bool *v6, uint16_t *port,
		      struct sw_error *err);
/* Parses "10.0.0.0/8", "2001:db8::/32" or one address; host bits must be 0. -EINVAL. */
int sw_parse_cidr(const char *text, struct sw_cidr *out, struct sw_error *err);
/* Prints a listener as "0.0.0.0:8000", "*:8000" or "[::1]:8000". */
void sw_format_listener(const struct sw_listener_conf *l, char *out, size_t size);

#endif
