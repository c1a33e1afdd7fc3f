// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Says what in a YAML document breaks the schema, on which line, and what is allowed there. It
 * walks document and schema side by side; libcyaml decides whether there is something to say. */
#include <stdio.h>
#include <string.h>

#include "config/field.h"
#include "config/schema.h"

#define KEYS 400 /* bytes for all keys of a mapping */

struct walk {
	const struct sw_origin *origin;
	struct sw_error *err;
};

static bool explain(const struct walk *w, const yaml_node_t *node,
		    const cyaml_schema_value_t *schema, const char *path);

static const char *scalar(const yaml_node_t *node)
{
	return node->type == YAML_SCALAR_NODE ? (const char *)node->data.scalar.value : NULL;
}

/* Always true: something was found. */
__attribute__((format(printf, 4, 5))) static bool found(const struct walk *w, size_t line,
							const char *path, const char *fmt, ...)
{
	char message[KEYS + 100];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(message, sizeof(message), fmt, ap);
	va_end(ap);
	sw_fail(w->err, -1, "%s:%zu: %s%s%s", w->origin->file, line + 1, path, path[0] ? ": " : "",
		message);
	return true;
}

static void list_keys(const cyaml_schema_field_t *fields, char *out, size_t size)
{
	size_t used = 0;

	out[0] = '\0';
	for (; fields->key && used < size; fields++)
		used += (size_t)snprintf(out + used, size - used, "%s%s", used ? ", " : "",
					 fields->key);
}

static bool unknown_key(const struct walk *w, const cyaml_schema_field_t *fields, size_t line,
			const char *path, const char *key)
{
	const cyaml_schema_field_t *nearest = fields;
	char keys[KEYS];

	for (const cyaml_schema_field_t *f = fields; f->key; f++)
		if (sw_distance(key, f->key) < sw_distance(key, nearest->key))
			nearest = f;
	list_keys(fields, keys, sizeof(keys));
	return found(w, line, path, "unknown key; did you mean '%s'? allowed: %s", nearest->key,
		     keys);
}

static bool explain_key(const struct walk *w, const yaml_node_t *node, size_t pair,
			const cyaml_schema_field_t *fields, const char *path)
{
	const yaml_node_pair_t *pairs = node->data.mapping.pairs.start;
	const yaml_node_t *key = yaml_document_get_node(w->origin->yaml, pairs[pair].key);
	const cyaml_schema_field_t *field = fields;
	size_t line = key->start_mark.line;
	char at[160];

	if (!scalar(key))
		return found(w, line, path, "a key is not text; allowed: KEY: VALUE");
	snprintf(at, sizeof(at), "%s%s%.60s", path, path[0] ? "." : "", scalar(key));
	while (field->key && strcmp(field->key, scalar(key)))
		field++;
	if (!field->key)
		return unknown_key(w, fields, line, at, scalar(key));
	for (size_t i = 0; i < pair; i++) {
		const yaml_node_t *other = yaml_document_get_node(w->origin->yaml, pairs[i].key);

		if (!strcmp(scalar(other), scalar(key)))
			return found(w, line, at, "given twice, first on line %zu; allowed: once",
				     other->start_mark.line + 1);
	}
	return explain(w, yaml_document_get_node(w->origin->yaml, pairs[pair].value), &field->value,
		       at);
}

static bool has_key(const struct walk *w, const yaml_node_t *node, const char *key)
{
	for (yaml_node_pair_t *p = node->data.mapping.pairs.start; p < node->data.mapping.pairs.top;
	     p++)
		if (!strcmp(scalar(yaml_document_get_node(w->origin->yaml, p->key)), key))
			return true;
	return false;
}

static bool explain_mapping(const struct walk *w, const yaml_node_t *node,
			    const cyaml_schema_field_t *fields, const char *path)
{
	size_t pairs;
	char at[160];

	if (node->type != YAML_MAPPING_NODE) {
		char keys[KEYS];

		list_keys(fields, keys, sizeof(keys));
		return found(w, node->start_mark.line, path,
			     "not a mapping; allowed: KEY: VALUE with the keys %s", keys);
	}
	pairs = (size_t)(node->data.mapping.pairs.top - node->data.mapping.pairs.start);
	for (size_t i = 0; i < pairs; i++)
		if (explain_key(w, node, i, fields, path))
			return true;
	for (; fields->key; fields++) {
		if ((fields->value.flags & CYAML_FLAG_OPTIONAL) || has_key(w, node, fields->key))
			continue;
		snprintf(at, sizeof(at), "%s%s%s", path, path[0] ? "." : "", fields->key);
		return found(w, node->start_mark.line, at, "missing; it has to be given");
	}
	return false;
}

static bool explain_list(const struct walk *w, const yaml_node_t *node,
			 const cyaml_schema_value_t *entry, const char *path)
{
	size_t items;
	char at[160];

	if (node->type != YAML_SEQUENCE_NODE)
		return found(w, node->start_mark.line, path, "not a list; allowed: [ITEM, ...]");
	items = (size_t)(node->data.sequence.items.top - node->data.sequence.items.start);
	for (size_t i = 0; i < items; i++) {
		yaml_node_item_t item = node->data.sequence.items.start[i];

		snprintf(at, sizeof(at), "%s[%zu]", path, i);
		if (explain(w, yaml_document_get_node(w->origin->yaml, item), entry, at))
			return true;
	}
	return false;
}

static bool explain(const struct walk *w, const yaml_node_t *node,
		    const cyaml_schema_value_t *schema, const char *path)
{
	switch (schema->type) {
	case CYAML_MAPPING: return explain_mapping(w, node, schema->mapping.fields, path);
	case CYAML_SEQUENCE: return explain_list(w, node, schema->sequence.entry, path);
	default:
		if (!scalar(node))
			return found(w, node->start_mark.line, path,
				     "not a single value; allowed: one value");
		if (strlen(scalar(node)) < schema->string.min)
			return found(w, node->start_mark.line, path,
				     "empty; allowed: a value, or leave the key out");
		return false;
	}
}

bool sw_schema_explain(const struct sw_origin *origin, struct sw_error *err)
{
	struct walk w = {origin, err};

	return explain(&w, yaml_document_get_root_node(origin->yaml), &sw_doc_schema, "");
}
