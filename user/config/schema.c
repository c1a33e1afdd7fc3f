// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The keys of the configuration file, as libcyaml takes them. Ranges, choices and what belongs
 * together are checked in build.c and listeners.c, for files and flags alike. */
#include "config/schema.h"

#define OPT  CYAML_FLAG_OPTIONAL
#define MUST CYAML_FLAG_DEFAULT

#define TEXT(key, flags, type, member)                                                             \
	CYAML_FIELD_STRING_PTR(key, CYAML_FLAG_POINTER | (flags), type, member, 1, CYAML_UNLIMITED)
#define LIST(key, flags, type, member, entry)                                                      \
	CYAML_FIELD_SEQUENCE(key, CYAML_FLAG_POINTER | (flags), type, member, entry, 0,            \
			     CYAML_UNLIMITED)
#define ENTRY(fields, type) {CYAML_VALUE_MAPPING(CYAML_FLAG_DEFAULT, type, fields)}

static const cyaml_schema_value_t text = {
	CYAML_VALUE_STRING(CYAML_FLAG_POINTER, char, 1, CYAML_UNLIMITED),
};

#define T struct sw_doc_series
static const cyaml_schema_field_t series_fields[] = {
	TEXT("running", OPT, T, field[SW_FIELD_RUNNING]),
	TEXT("waiting", OPT, T, field[SW_FIELD_WAITING]),
	TEXT("kv_ratio", OPT, T, field[SW_FIELD_RATIO]),
	TEXT("kv_used", OPT, T, field[SW_FIELD_USED]),
	TEXT("kv_total", OPT, T, field[SW_FIELD_TOTAL]),
	TEXT("prefill_tokens", OPT, T, field[SW_FIELD_PREFILL]),
	TEXT("queued_tokens", OPT, T, field[SW_FIELD_QUEUED]),
	TEXT("max_batched", OPT, T, field[SW_FIELD_BATCHED]),
	CYAML_FIELD_END,
};
#undef T

#define T struct sw_doc_worker
static const cyaml_schema_field_t worker_fields[] = {
	TEXT("name", OPT, T, name),
	TEXT("scrape", OPT, T, scrape),
	TEXT("address", OPT, T, address),
	TEXT("engine", OPT, T, engine),
	TEXT("kv_total", OPT, T, kv_total),
	TEXT("max_num_batched_tokens", OPT, T, max_num_batched_tokens),
	TEXT("period_ms", OPT, T, period_ms),
	TEXT("timeout_ms", OPT, T, timeout_ms),
	TEXT("bearer_token_file", OPT, T, bearer_token_file),
	TEXT("ca_file", OPT, T, ca_file),
	TEXT("insecure", OPT, T, insecure),
	TEXT("netns", OPT, T, netns),
	TEXT("data_parallel_start_rank", OPT, T, data_parallel_start_rank),
	TEXT("data_parallel_size", OPT, T, data_parallel_size),
	TEXT("engine_request_limit", OPT, T, engine_request_limit),
	TEXT("request_queue_limit", OPT, T, request_queue_limit),
	TEXT("share", OPT, T, share),
	TEXT("drain", OPT, T, drain),
	TEXT("worker_id", OPT, T, worker_id),
	CYAML_FIELD_MAPPING_PTR("series", CYAML_FLAG_POINTER | OPT, T, series, series_fields),
	TEXT("rank_label", OPT, T, rank_label),
	CYAML_FIELD_END,
};
static const cyaml_schema_value_t worker = ENTRY(worker_fields, T);
#undef T

#define T struct sw_doc_thresholds
static const cyaml_schema_field_t threshold_fields[] = {
	TEXT("active_decode_blocks_threshold", OPT, T, limit[SW_LIM_DECODE]),
	TEXT("active_prefill_tokens_threshold", OPT, T, limit[SW_LIM_PREFILL]),
	TEXT("active_prefill_tokens_threshold_frac", OPT, T, limit[SW_LIM_PREFILL_FRAC]),
	TEXT("max_num_queued_reqs", OPT, T, limit[SW_LIM_QUEUED_REQS]),
	TEXT("max_num_queued_tokens", OPT, T, limit[SW_LIM_QUEUED_TOKENS]),
	TEXT("max_queued_requests", OPT, T, limit[SW_LIM_QUEUED_REQUESTS]),
	TEXT("max_concurrent_requests", OPT, T, limit[SW_LIM_CONCURRENT_REQUESTS]),
	CYAML_FIELD_END,
};
#undef T

#define T struct sw_doc_templates
static const cyaml_schema_field_t template_fields[] = {
	TEXT("default", OPT, T, family[SW_FAMILY_DEFAULT]),
	TEXT("anthropic", OPT, T, family[SW_FAMILY_ANTHROPIC]),
	TEXT("tgi", OPT, T, family[SW_FAMILY_TGI]),
	CYAML_FIELD_END,
};
#undef T

#define T struct sw_doc_retry_after
static const cyaml_schema_field_t retry_after_fields[] = {
	TEXT("min", MUST, T, min),
	TEXT("max", OPT, T, max),
	CYAML_FIELD_END,
};
#undef T

#define T struct sw_doc_discover
static const cyaml_schema_field_t discover_fields[] = {
	TEXT("namespace", OPT, T, namespace),
	TEXT("component", OPT, T, component),
	TEXT("endpoint", OPT, T, endpoint),
	CYAML_FIELD_END,
};
#undef T

#define T struct sw_doc_dynamo
static const cyaml_schema_field_t dynamo_fields[] = {
	TEXT("store", OPT, T, store),
	LIST("etcd", OPT, T, etcd, &text),
	TEXT("etcd_user", OPT, T, etcd_user),
	TEXT("etcd_password_file", OPT, T, etcd_password_file),
	TEXT("etcd_ca_file", OPT, T, etcd_ca_file),
	TEXT("store_path", OPT, T, store_path),
	LIST("zmq", OPT, T, zmq, &text),
	TEXT("zmq_broker", OPT, T, zmq_broker),
	LIST("nats", OPT, T, nats, &text),
	TEXT("nats_credentials_file", OPT, T, nats_credentials_file),
	CYAML_FIELD_END,
};
#undef T

#define T struct sw_doc_pool
static const cyaml_schema_field_t pool_fields[] = {
	TEXT("name", MUST, T, name),
	TEXT("model", OPT, T, model),
	CYAML_FIELD_MAPPING_PTR("discover", CYAML_FLAG_POINTER | OPT, T, discover, discover_fields),
	TEXT("engine", OPT, T, engine),
	CYAML_FIELD_MAPPING_PTR("series", CYAML_FLAG_POINTER | OPT, T, series, series_fields),
	TEXT("rank_label", OPT, T, rank_label),
	TEXT("preset", OPT, T, preset),
	TEXT("overload_status", OPT, T, overload_status),
	TEXT("body", OPT, T, body),
	CYAML_FIELD_MAPPING("templates", OPT, T, templates, template_fields),
	CYAML_FIELD_MAPPING("retry_after", OPT, T, retry_after, retry_after_fields),
	TEXT("retry_after_ms", OPT, T, retry_after_ms),
	TEXT("max_answer_bytes", OPT, T, max_answer_bytes),
	TEXT("observe", OPT, T, observe),
	CYAML_FIELD_MAPPING("thresholds", OPT, T, thresholds, threshold_fields),
	TEXT("stale_after_ms", OPT, T, stale_after_ms),
	TEXT("on_stale", OPT, T, on_stale),
	TEXT("hold_for_ms", OPT, T, hold_for_ms),
	TEXT("release_ratio", OPT, T, release_ratio),
	TEXT("min_hold_ms", OPT, T, min_hold_ms),
	LIST("workers", OPT, T, workers, &worker),
	TEXT("steer", OPT, T, steer),
	LIST("virtual", OPT, T, virtuals, &text),
	TEXT("cgroup", OPT, T, cgroup),
	TEXT("netns", OPT, T, netns),
	TEXT("on_full", OPT, T, on_full),
	TEXT("refuse_errno", OPT, T, refuse_errno),
	TEXT("pooled_upstreams", OPT, T, pooled_upstreams),
	TEXT("idle_close_after_ms", OPT, T, idle_close_after_ms),
	TEXT("engine_request_limit", OPT, T, engine_request_limit),
	TEXT("request_queue_limit", OPT, T, request_queue_limit),
	TEXT("count", OPT, T, count),
	TEXT("report_lag_ms", OPT, T, report_lag_ms),
	CYAML_FIELD_END,
};
static const cyaml_schema_value_t pool = ENTRY(pool_fields, T);
#undef T

#define T struct sw_doc_paths
static const cyaml_schema_field_t path_fields[] = {
	TEXT("all", OPT, T, all),
	LIST("shed", OPT, T, shed, &text),
	LIST("pass", OPT, T, pass, &text),
	CYAML_FIELD_END,
};
#undef T

#define T struct sw_doc_listener
static const cyaml_schema_field_t listener_fields[] = {
	TEXT("listen", MUST, T, listen),
	TEXT("pool", OPT, T, pool),
	TEXT("netns", OPT, T, netns),
	LIST("exempt", OPT, T, exempt, &text),
	TEXT("syn_rate", OPT, T, syn_rate),
	TEXT("intercept", OPT, T, intercept),
	CYAML_FIELD_MAPPING("paths", OPT, T, paths, path_fields),
	CYAML_FIELD_END,
};
static const cyaml_schema_value_t listener = ENTRY(listener_fields, T);
#undef T

#define T struct sw_doc
static const cyaml_schema_field_t doc_fields[] = {
	LIST("interfaces", OPT, T, interfaces, &text),
	TEXT("mode", OPT, T, mode),
	TEXT("control", OPT, T, control),
	TEXT("control_tcp", OPT, T, control_tcp),
	TEXT("control_token_file", OPT, T, control_token_file),
	TEXT("state_file", OPT, T, state_file),
	CYAML_FIELD_MAPPING("dynamo", OPT, T, dynamo, dynamo_fields),
	TEXT("pin_root", OPT, T, pin_root),
	TEXT("heartbeat_ms", OPT, T, heartbeat_ms),
	TEXT("deadline_ms", OPT, T, deadline_ms),
	TEXT("established_flows", OPT, T, established_flows),
	TEXT("log_level", OPT, T, log_level),
	LIST("pools", MUST, T, pools, &pool),
	LIST("listeners", OPT, T, listeners, &listener),
	CYAML_FIELD_END,
};

const cyaml_schema_value_t sw_doc_schema = {
	CYAML_VALUE_MAPPING(CYAML_FLAG_POINTER, T, doc_fields),
};
#undef T
