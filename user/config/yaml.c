// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Reads a configuration file: text, then a document with line numbers (libyaml), then a struct
 * sw_doc (libcyaml). What the values mean is checked in build.c. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/schema.h"

#define FILE_MAX (1u << 20) /* bytes; the largest sensible configuration is far below */

static int read_file(const char *path, char **text, size_t *size, struct sw_error *err)
{
	FILE *f = fopen(path, "re");
	int ret = 0;

	*text = NULL;
	*size = 0;
	if (!f)
		return sw_fail(err, -errno, "%s: cannot be opened: %m", path);
	*text = malloc(FILE_MAX + 1);
	if (*text)
		*size = fread(*text, 1, FILE_MAX + 1, f);
	if (!*text || ferror(f))
		ret = sw_fail(err, -errno, "%s: cannot be read: %m", path);
	else if (*size > FILE_MAX)
		ret = sw_fail(err, -EFBIG, "%s: too large; allowed: %u bytes", path, FILE_MAX);
	fclose(f);
	return ret;
}

static int not_yaml(const yaml_parser_t *p, const char *path, struct sw_error *err)
{
	return sw_fail(err, -EINVAL, "%s:%zu: not YAML: %s, column %zu (indent with spaces only)",
		       path, p->problem_mark.line + 1, p->problem ? p->problem : "out of memory",
		       p->problem_mark.column + 1);
}

/* Exactly one document with something in it. */
static int parse_document(const char *path, const char *text, size_t size, yaml_document_t *out,
			  struct sw_error *err)
{
	yaml_document_t next;
	yaml_node_t *more;
	yaml_parser_t p;
	int ret = 0;

	if (!yaml_parser_initialize(&p))
		return sw_fail(err, -ENOMEM, "%s: out of memory", path);
	yaml_parser_set_input_string(&p, (const unsigned char *)text, size);
	if (!yaml_parser_load(&p, out)) {
		ret = not_yaml(&p, path, err);
		goto out;
	}
	if (!yaml_document_get_root_node(out)) {
		ret = sw_fail(err, -EINVAL, "%s:1: empty; pools and listeners have to be given",
			      path);
	} else if (!yaml_parser_load(&p, &next)) {
		ret = not_yaml(&p, path, err);
	} else {
		more = yaml_document_get_root_node(&next);
		if (more)
			ret = sw_fail(err, -EINVAL,
				      "%s:%zu: a second YAML document; allowed: one in a file",
				      path, more->start_mark.line + 1);
		yaml_document_delete(&next);
	}
	if (ret)
		yaml_document_delete(out);
out:
	yaml_parser_delete(&p);
	return ret;
}

static const yaml_node_t *child(yaml_document_t *yaml, const yaml_node_t *node, const char *step,
				size_t length, size_t *line)
{
	const yaml_node_t *key, *item = NULL;

	if (node->type == YAML_SEQUENCE_NODE && step[0] == '[') {
		yaml_node_item_t *items = node->data.sequence.items.start;

		if (items + strtoul(step + 1, NULL, 10) < node->data.sequence.items.top)
			item = yaml_document_get_node(yaml, items[strtoul(step + 1, NULL, 10)]);
		if (item)
			*line = item->start_mark.line;
		return item;
	}
	if (node->type != YAML_MAPPING_NODE)
		return NULL;
	for (yaml_node_pair_t *p = node->data.mapping.pairs.start; p < node->data.mapping.pairs.top;
	     p++) {
		key = yaml_document_get_node(yaml, p->key);
		if (key->data.scalar.length == length &&
		    !memcmp(key->data.scalar.value, step, length)) {
			*line = key->start_mark.line;
			return yaml_document_get_node(yaml, p->value);
		}
	}
	return NULL;
}

unsigned sw_yaml_line(yaml_document_t *yaml, const char *path)
{
	const yaml_node_t *node = yaml_document_get_root_node(yaml);
	size_t line = node->start_mark.line;

	while (node && *path) {
		size_t length = path[0] == '[' ? strcspn(path, "]") + 1 : strcspn(path, ".[");

		node = child(yaml, node, path, length, &line);
		path += length;
		path += path[0] == '.';
	}
	return (unsigned)line + 1;
}

static int load(const struct sw_origin *origin, const char *text, size_t size,
		const struct sw_added_worker *added, size_t n, struct sw_config **out,
		struct sw_error *err)
{
	const cyaml_config_t cyaml = {.mem_fn = cyaml_mem};
	struct sw_doc *doc = NULL;
	cyaml_err_t bad = cyaml_load_data((const uint8_t *)text, size, &cyaml, &sw_doc_schema,
					  (cyaml_data_t **)&doc, NULL);
	int ret;

	if (bad == CYAML_OK) {
		ret = sw_doc_add(doc, added, n, err);
		if (!ret)
			ret = sw_config_build(doc, origin, out, err);
		cyaml_free(&cyaml, &sw_doc_schema, doc, 0);
		return ret;
	}
	if (sw_schema_explain(origin, err))
		return -EINVAL;
	return sw_fail(err, bad == CYAML_ERR_OOM ? -ENOMEM : -EINVAL, "%s: %s", origin->file,
		       cyaml_strerror(bad));
}

int sw_config_load(const char *path, struct sw_config **out, struct sw_error *err)
{
	yaml_document_t yaml;
	struct sw_origin origin = {.file = path, .yaml = &yaml};
	char *text;
	size_t size;
	int ret = read_file(path, &text, &size, err);

	if (!ret)
		ret = parse_document(path, text, size, &yaml, err);
	if (!ret) {
		ret = load(&origin, text, size, NULL, 0, out, err);
		yaml_document_delete(&yaml);
	}
	if (ret) {
		free(text);
		return ret;
	}
	(*out)->text = text;
	(*out)->text_size = size;
	return 0;
}

/* What stands on the command line beside the file. */
static void keep_flags(const struct sw_config *from, struct sw_config *c)
{
	free(c->control);
	c->control = strdup(from->control);
	c->log_level = from->log_level;
}

int sw_config_with(const struct sw_config *from, const struct sw_added_worker *added, size_t n,
		   struct sw_config **out, struct sw_error *err)
{
	yaml_document_t yaml;
	struct sw_origin origin = {.file = from->file, .yaml = &yaml, .again = true};
	struct sw_config *c = NULL;
	int ret = parse_document(from->file, from->text, from->text_size, &yaml, err);

	if (ret)
		return ret;
	ret = load(&origin, from->text, from->text_size, added, n, &c, err);
	yaml_document_delete(&yaml);
	if (ret)
		return ret;
	keep_flags(from, c);
	sw_mark_added(c, added, n);
	c->text = malloc(from->text_size);
	if (!c->text || !c->control) {
		sw_config_free(c);
		return sw_fail(err, -ENOMEM, "%s: out of memory", from->file);
	}
	c->text_size = from->text_size;
	memcpy(c->text, from->text, from->text_size);
	*out = c;
	return 0;
}
