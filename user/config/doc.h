/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The configuration as it was written: every scalar still text, NULL where it was left out. Filled
 * by libcyaml (yaml.c) or from flags (args.c); build.c checks it and makes a struct sw_config. Text
 * because libcyaml's own numbers take "-5", "1_000" and "0.5x" without a word. */
#ifndef SPILLWAY_CONFIG_DOC_H
#define SPILLWAY_CONFIG_DOC_H

#include "config/config.h"

struct sw_doc_series {
	char *field[SW_FIELDS];
};

struct sw_doc_worker {
	char *name, *scrape, *engine, *kv_total, *max_num_batched_tokens;
	char *period_ms, *timeout_ms, *bearer_token_file, *ca_file, *insecure, *netns;
	char *data_parallel_start_rank, *data_parallel_size;
	char *address, *share, *drain, *engine_request_limit, *request_queue_limit;
	char *worker_id, *rank_label;
	struct sw_doc_series *series;
};

struct sw_doc_thresholds {
	char *limit[SW_LIMITS];
};

struct sw_doc_templates {
	char *family[SW_FAMILIES];
};

struct sw_doc_retry_after {
	char *min, *max;
};

struct sw_doc_discover {
	char *namespace, *component, *endpoint;
};

struct sw_doc_dynamo {
	char *store, *store_path, *etcd_user, *etcd_password_file, *etcd_ca_file;
	char *zmq_broker, *nats_credentials_file;
	char **etcd, **zmq, **nats;
	unsigned etcd_count, zmq_count, nats_count;
};

struct sw_doc_pool {
	char *model, *rank_label;
	struct sw_doc_discover *discover;
	struct sw_doc_series *series;
	char *name, *engine, *preset, *overload_status, *body, *retry_after_ms, *max_answer_bytes;
	char *observe, *stale_after_ms, *on_stale, *hold_for_ms, *release_ratio, *min_hold_ms;
	struct sw_doc_thresholds thresholds;
	struct sw_doc_templates templates;
	struct sw_doc_retry_after retry_after;
	struct sw_doc_worker *workers;
	unsigned workers_count;
	char *steer, *cgroup, *netns, *on_full, *refuse_errno;
	char *pooled_upstreams, *idle_close_after_ms;
	char *engine_request_limit, *request_queue_limit, *count, *report_lag_ms;
	char **virtuals;
	unsigned virtuals_count;
};

struct sw_doc_paths {
	char *all;
	char **shed, **pass;
	unsigned shed_count, pass_count;
};

struct sw_doc_listener {
	char *listen, *pool, *netns, *syn_rate, *intercept;
	char **exempt;
	unsigned exempt_count;
	struct sw_doc_paths paths;
};

struct sw_doc {
	char *mode, *control, *pin_root, *heartbeat_ms, *deadline_ms, *log_level;
	char *established_flows, *control_tcp, *control_token_file, *state_file;
	struct sw_doc_dynamo dynamo;
	char **interfaces;
	struct sw_doc_pool *pools;
	struct sw_doc_listener *listeners;
	unsigned interfaces_count, pools_count, listeners_count;
};

/* Where a document came from, so that a field can be named in its writer's terms. */
struct sw_origin {
	const char *file; /* NULL: the command line */
	struct yaml_document_s *yaml;
	bool again; /* it was built before, and its warnings were logged */
};

/* The line of the file that the field at `path` ("pools[0].engine") is on; of what it belongs in,
 * when it was left out. */
unsigned sw_yaml_line(struct yaml_document_s *yaml, const char *path);

/* The flag that sets the field at `path`, or `path` itself. */
void sw_flag_of(const char *path, char *out, size_t size);

/* Adds workers to a document of libcyaml's, which frees them with all the rest; pools that it does
 * not have are passed over. -ENOMEM. Afterwards, marks them in what was built of it. */
int sw_doc_add(struct sw_doc *doc, const struct sw_added_worker *added, size_t n,
	       struct sw_error *err);
void sw_mark_added(struct sw_config *c, const struct sw_added_worker *added, size_t n);

/* Checks `doc` and makes a configuration. On failure *out is untouched. */
int sw_config_build(const struct sw_doc *doc, const struct sw_origin *origin,
		    struct sw_config **out, struct sw_error *err);

#endif
