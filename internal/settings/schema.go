package settings

import (
	"strings"

	"github.com/spf13/pflag"
)

// ObjectSchema is the schema of a mapping without other keys.
func ObjectSchema(properties map[string]any, required ...string) map[string]any {
	s := map[string]any{"type": "object", "properties": properties, "additionalProperties": false}
	if len(required) > 0 {
		s["required"] = required
	}
	return s
}

// FlagSchema is the schema of a flag in a plan's file.
func FlagSchema(f *pflag.Flag) map[string]any {
	s := ValueOf(f).Schema()
	s["description"] = strings.ReplaceAll(f.Usage, "\n", " ")
	return s
}

// number reports whether a value may be a number.
func (v *Value) number() bool { return v.Kind == "n" || strings.HasPrefix(v.Kind, "n/") }

// Schema is the schema of the flag's values.
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
	if v.Object != nil { // no anyOf, so that an editor can report mistakes inside the object
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
