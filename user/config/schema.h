/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The schema of the configuration file, and what it has to say about a file that breaks it. */
#ifndef SPILLWAY_CONFIG_SCHEMA_H
#define SPILLWAY_CONFIG_SCHEMA_H

#include <cyaml/cyaml.h>
#include <yaml.h>

#include "config/doc.h"

extern const cyaml_schema_value_t sw_doc_schema;

/* Finds the first place in the document that the schema does not allow, with its line, where
 * libcyaml only has the line of the value before it. False: there is none. */
bool sw_schema_explain(const struct sw_origin *origin, struct sw_error *err);

#endif
