package main

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"github.com/tideline-io/tideline/internal/platform/config"
)

type shape = map[string]any

// schemaOf makes the schema of the chart's values, which refuses every value that it does not know, those of the operator's
// configuration included.
func schemaOf(components []string) ([]byte, error) {
	switches := shape{}
	for _, c := range components {
		if c == volatileLedger {
			continue
		}
		switches[valueOf(c)] = shape{"type": "boolean", "description": "adds config/components/" + c}
	}
	file, err := typed(reflect.TypeFor[config.Configuration]())
	if err != nil {
		return nil, err
	}
	file["description"] = "fields of the operator's configuration that differ from config/manager/configuration.yaml"
	// Helm keeps the file's own.
	for _, fixed := range []string{"apiVersion", "kind"} {
		delete(file["properties"].(shape), fixed)
	}
	text := shape{"type": "string"}
	anything := shape{"type": "object"}
	values := closed(shape{
		"image": closed(shape{
			"repository":  shape{"type": "string", "minLength": 1},
			"tag":         shape{"type": "string", "description": "not used where there is a digest"},
			"digest":      shape{"type": "string", "pattern": "^$|^sha256:[0-9a-f]{64}$"},
			"pullPolicy":  shape{"enum": []string{"Always", "IfNotPresent", "Never"}},
			"pullSecrets": shape{"type": "array", "items": closed(shape{"name": text})},
		}),
		"components": closed(switches),
		"pool":       shape{"type": "boolean", "description": "creates the Queue in which merges take turns"},
		"ledger": closed(shape{
			"claim": closed(shape{
				"size": shape{
					"type": "string", "description": "creates a claim of this size, unless the ledger is elsewhere; empty: none",
					"pattern": "^$|^[0-9]+(Ki|Mi|Gi|Ti)$",
				},
				"storageClassName": text,
				"existing":         shape{"type": "string", "description": "a claim of yours; goes before size"},
			}),
			"postgres": closed(shape{
				"secretName": shape{"type": "string", "description": "a Secret with the DSN; empty: none"},
				"key":        shape{"type": "string", "minLength": 1},
			}),
		}),
		"configuration":     file,
		"networkPolicy":     closed(shape{"egress": shape{"type": "array", "items": anything}}),
		"resources":         anything,
		"goMemoryLimit":     shape{"type": "string", "pattern": "^[0-9]+(B|KiB|MiB|GiB)$"},
		"nodeSelector":      shape{"type": "object", "additionalProperties": text},
		"tolerations":       shape{"type": "array", "items": anything},
		"affinity":          anything,
		"priorityClassName": text,
		// Helm gives every chart these.
		"global": anything,
	})
	values["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	values["title"] = "Values of Tideline's chart"
	content, err := json.MarshalIndent(values, "", "  ")
	return append(content, '\n'), err
}

// closed is an object with these fields and no other.
func closed(properties shape) shape {
	return shape{"type": "object", "additionalProperties": false, "properties": properties}
}

// typed is the schema of a type of the configuration, by its fields' JSON names.
func typed(t reflect.Type) (shape, error) {
	switch t.Kind() {
	case reflect.String:
		return shape{"type": "string"}, nil
	case reflect.Bool:
		return shape{"type": "boolean"}, nil
	case reflect.Int32, reflect.Int64:
		return shape{"type": "integer"}, nil
	case reflect.Slice:
		items, err := typed(t.Elem())
		return shape{"type": "array", "items": items}, err
	case reflect.Map:
		values, err := typed(t.Elem())
		return shape{"type": "object", "additionalProperties": values}, err
	case reflect.Struct:
		properties := shape{}
		for i := range t.NumField() {
			name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
			of, err := typed(t.Field(i).Type)
			if err != nil {
				return nil, err
			}
			properties[name] = of
		}
		return closed(properties), nil
	default:
		return nil, fmt.Errorf("the schema has no words for %s: add them", t)
	}
}
