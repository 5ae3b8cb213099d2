package cli

import (
	"context"
	"errors"
	"io"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"hammerlock/checker"
	"hammerlock/history"
	"hammerlock/internal/harness"
	"hammerlock/internal/human"
	"hammerlock/internal/settings"
	"hammerlock/results"
)

func (e Env) planFileCommand(p harness.Plan) *cobra.Command {
	c := &cobra.Command{
		Use: "plan FILE", Short: "print a plan as it is resolved, with the origin of every value",
		Long: "plan reads a plan as --plan does and prints what comes of it: each setting with its origin, which\n" +
			"is the command line, a variable of the environment, the file, or the default, in that order of\n" +
			"strength. What is printed is a plan again. Nothing is started.",
		Example: "  # plan.yaml\n  topology: [single, redlock]\n  workers: 64\n  rate: 200/s\n" +
			"  gate: [response.p99<50ms]",
	}
	o := newOptions(c, p)
	o.allFlags()
	c.Args = func(c *cobra.Command, args []string) error {
		if len(args) > 0 {
			o.File = args[0]
		}
		return e.takes(0, 1)(c, args)
	}
	return e.command(c, o, func(ctx context.Context, _ []string) int {
		o.scenarios()
		_, err := o.plan.Check(ctx, o.Mistakes)
		// a plan may still be valid if only this machine cannot run it
		if _, here := errors.AsType[*harness.SetupError](err); err != nil && !here {
			return e.refuse(ctx, o, err)
		}
		o.resolveAttached()
		return e.end(Exit{}, o.writePlan(e.Stdout))
	})
}

// draft is the version of JSON Schema that all our schemas use (json-schema.org).
const draft = "https://json-schema.org/draft/2020-12/schema"

// documents maps each kind of JSON or YAML document to the function that writes its schema.
func (e Env) documents() map[string]func(io.Writer) error {
	return map[string]func(io.Writer) error{
		"plan": e.writePlanSchema,
		"record": func(w io.Writer) error {
			return writeSchemaOf[results.Released](w, "Hammerlock record of a release: record/runs")
		},
		"run": func(w io.Writer) error { return writeSchemaOf[results.Run](w, "Hammerlock run: "+results.RunFile) },
		"summary": func(w io.Writer) error {
			return writeSchemaOf[Document](w, "Hammerlock summary: what --json prints")
		},
	}
}

func (e Env) schemaCommand() *cobra.Command {
	names := slices.Sorted(maps.Keys(e.documents()))
	c := &cobra.Command{
		Use: "schema " + strings.Join(names, "|"), Args: e.takes(1, 1),
		Short: "print the JSON Schema of a plan, of a saved run, of a record or of what --json prints",
		Long: "schema prints a JSON Schema: of a plan, for editors; of run.json, the record of a saved run; of the\n" +
			"record of a released library (record/runs); of the summary that bench --json prints. Their field\n" +
			"schema is a version: fields may be added without a new one, and keep names and units.",
		Example: "  bench schema run > run.schema.json", ValidArgsFunction: settings.CompleteList(names, false),
	}
	o := newOptions(c, harness.Plan{})
	return e.command(c, o, e.simple(o, func(_ context.Context, args []string) error {
		if write := e.documents()[args[0]]; write != nil {
			return write(e.Stdout)
		}
		return usage("%q has no schema: %s", args[0], human.Instead(args[0], names))
	}))
}

// writeSchemaOf writes the JSON schema of a Go type. It allows unknown fields, because later versions may add fields.
func writeSchemaOf[T any](w io.Writer, title string) error {
	statuses := []any{}
	for s := range checker.NotJudged + 1 {
		statuses = append(statuses, s.String())
	}
	s, err := jsonschema.For[T](&jsonschema.ForOptions{TypeSchemas: map[reflect.Type]*jsonschema.Schema{
		reflect.TypeFor[checker.Status](): {Type: "string", Enum: statuses},
		reflect.TypeFor[history.Op]():     {Type: "object", Description: "an operation, as history/FORMAT.md has it"},
	}})
	if err != nil {
		return err
	}
	open(s)
	s.Schema, s.Title = draft, title
	return encode(s)(w)
}

// The function open changes a schema so that objects may have additional fields. Maps still require the type of their
// values.
func open(s *jsonschema.Schema) {
	if s == nil {
		return
	}
	if more := s.AdditionalProperties; more != nil && more.Not != nil {
		s.AdditionalProperties = nil
	}
	open(s.AdditionalProperties)
	open(s.Items)
	for _, p := range s.Properties {
		open(p)
	}
}

// writePlanSchema writes one schema for the plans of bench, of verify, and of the commands "http" of both. If a key has
// different meanings in two commands, the schema allows the values of both.
func (e Env) writePlanSchema(w io.Writer) error {
	properties := map[string]any{phasesKey: phaseSchema(), servicesKey: serviceSchema()}
	meanings := map[string][]any{}
	for _, p := range []harness.Plan{e.benchPlan(), e.verifyPlan(), httpPlan(e.benchPlan()), httpPlan(e.verifyPlan())} {
		o := newOptions(&cobra.Command{}, p)
		o.allFlags()
		o.Flags.VisitAll(func(f *pflag.Flag) {
			meaning, s := settings.ValueOf(f).Schema(), settings.FlagSchema(f)
			known := func(other any) bool { return reflect.DeepEqual(other, meaning) }
			if !settings.Settable(f) || slices.ContainsFunc(meanings[f.Name], known) {
				return
			}
			if meanings[f.Name] = append(meanings[f.Name], meaning); len(meanings[f.Name]) > 1 {
				s = map[string]any{"anyOf": []any{properties[f.Name], s}}
			}
			properties[f.Name] = s
		})
	}
	s := settings.ObjectSchema(properties)
	s["$schema"], s["title"] = draft, "Hammerlock plan"
	return encode(s)(w)
}
