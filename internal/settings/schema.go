package settings

import (
	"strings"

	"github.com/spf13/pflag"
)

// ObjectSchema returns the JSON schema of an object that may have only the given properties.
func ObjectSchema(properties map[string]any, required ...string) map[string]any {
	s := map[string]any{"type": "object", "properties": properties, "additionalProperties": false}
	if len(required) > 0 {
		s["required"] = required
	}
	return s
}

// FlagSchema returns the JSON schema of a flag's value in a plan's file.
func FlagSchema(f *pflag.Flag) map[string]any {
	s := ValueOf(f).Schema()
	s["description"] = strings.ReplaceAll(f.Usage, "\n", " ")
	return s
}

// number tells whether the value may be written as a number.
func (v *Value) number() bool { return v.Kind == "n" || strings.HasPrefix(v.Kind, "n/") }

// Schema returns the JSON schema of the value, without a description.
func (v *Value) Schema() map[string]any {
	one := map[string]any{"type": "string"}
	switch {
	case v.Enum != nil:
		one["enum"] = v.Enum
	case v.Kind == "n":
		one["type"] = "integer"
	case v.Kind == "bool":
		one["type"] = "boolean"
	case v.Kind == "duration":
		one["pattern"] = `^[0-9.]+(ns|us|µs|ms|s|m|h)([0-9.]+(ns|us|µs|ms|s|m|h))*$`
	case v.number() || strings.HasPrefix(v.Kind, "status"):
		one["type"] = []string{"string", "number"}
	}
	if v.Object != nil { // not "anyOf", because editors then report no mistakes inside the object
		item := v.Object()
		item["type"] = []string{"string", "object"}
		return map[string]any{"type": []string{"string", "array"}, "items": item}
	}
	if !v.List() && !v.Repeatable {
		return one
	}
	some := []any{one, map[string]any{"type": "array", "items": one}}
	if v.List() && v.Enum != nil {
		some = append(some, map[string]any{"type": "string", "pattern": ","})
	}
	return map[string]any{"anyOf": some}
}
