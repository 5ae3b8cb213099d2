// Package check reads what is in deploy as strictly as those do whom it is for. It is a module of its own: nothing else
// needs the types of Kubernetes and of Compose.
package check

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"sigs.k8s.io/yaml"
)

// kinds are those that manifests may have.
var kinds = map[string]func() any{
	"v1 Service":                         func() any { return new(corev1.Service) },
	"v1 Secret":                          func() any { return new(corev1.Secret) },
	"v1 PersistentVolumeClaim":           func() any { return new(corev1.PersistentVolumeClaim) },
	"batch/v1 Job":                       func() any { return new(batchv1.Job) },
	"networking.k8s.io/v1 NetworkPolicy": func() any { return new(networkingv1.NetworkPolicy) },
}

// documents are those of a file of YAML.
func documents(text []byte) [][]byte {
	var all [][]byte
	for _, d := range bytes.Split(text, []byte("\n---\n")) {
		if len(bytes.TrimSpace(regexp.MustCompile(`(?m)^#.*$`).ReplaceAll(d, nil))) > 0 {
			all = append(all, d)
		}
	}
	return all
}

// parse reads a document into the type that it names. A field that the type does not have is an error.
func parse(text []byte) (any, error) {
	var head struct{ APIVersion, Kind string }
	if err := yaml.Unmarshal(text, &head); err != nil {
		return nil, err
	}
	make, ok := kinds[head.APIVersion+" "+head.Kind]
	if !ok {
		return nil, fmt.Errorf("%s %s: no such kind", head.APIVersion, head.Kind)
	}
	v := make()
	return v, yaml.UnmarshalStrict(text, v)
}

// manifests reads all manifests.
func manifests(t *testing.T) (texts [][]byte, all []any) {
	t.Helper()
	files, err := filepath.Glob("../kubernetes/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal("no manifests", err)
	}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for i, d := range documents(text) {
			v, err := parse(d)
			if err != nil {
				t.Errorf("%s, document %d: %v", name, i+1, err)
			}
			texts, all = append(texts, d), append(all, v)
		}
	}
	return texts, all
}

// TestAMisspeltFieldIsFound misspells each field of every manifest in turn: none is let pass.
func TestAMisspeltFieldIsFound(t *testing.T) {
	texts, _ := manifests(t)
	field := regexp.MustCompile(`(?m)^(?:- | )*([a-z][a-zA-Z]+):(?: .*)?$`)
	// The names of these are data, and anything may stand there.
	data := map[string]bool{"app": true, "role": true, "token": true, "storage": true, "cpu": true, "memory": true}
	n := 0
	for _, text := range texts {
		for _, m := range field.FindAllSubmatchIndex(text, -1) {
			name := string(text[m[2]:m[3]])
			if data[name] {
				continue
			}
			wrong := strings.Join([]string{string(text[:m[3]]), "x", string(text[m[3]:])}, "")
			if _, err := parse([]byte(wrong)); err == nil {
				t.Errorf("%sx is let pass in:\n%s", name, text)
			}
			n++
		}
	}
	if n < 50 {
		t.Errorf("only %d fields were misspelt", n)
	}
}

// TestTheManifestsFitEachOther compares what one manifest says with what another one relies on.
func TestTheManifestsFitEachOther(t *testing.T) {
	_, all := manifests(t)
	var service *corev1.Service
	jobs := map[string]*batchv1.Job{}
	have := map[string]bool{}
	for _, v := range all {
		switch v := v.(type) {
		case *corev1.Service:
			service = v
		case *batchv1.Job:
			jobs[v.Spec.Template.Labels["role"]] = v
		case *corev1.Secret:
			have["secret "+v.Name] = true
		case *corev1.PersistentVolumeClaim:
			have["claim "+v.Name] = true
		}
	}
	agent, coordinator := jobs["agent"], jobs["coordinator"]
	if service == nil || agent == nil || coordinator == nil {
		t.Fatal("a service, agents, a coordinator:", service != nil, agent != nil, coordinator != nil)
	}
	labels := coordinator.Spec.Template.Labels
	for k, v := range service.Spec.Selector {
		if labels[k] != v {
			t.Errorf("the service selects %s=%s, the coordinator has %q", k, v, labels[k])
		}
	}
	args := strings.Join(coordinator.Spec.Template.Spec.Containers[0].Args, " ")
	port := service.Spec.Ports[0].Port
	if want := fmt.Sprintf("--agents %d ", *agent.Spec.Completions); !strings.Contains(args, want) ||
		*agent.Spec.Parallelism != *agent.Spec.Completions {
		t.Errorf("the coordinator is told %q; there are %d agents, %d at a time", args, *agent.Spec.Completions,
			*agent.Spec.Parallelism)
	}
	if want := fmt.Sprintf("--listen 0.0.0.0:%d", port); !strings.Contains(args, want) {
		t.Errorf("the coordinator is told %q, want %q", args, want)
	}
	if got, want := strings.Join(agent.Spec.Template.Spec.Containers[0].Args, " "),
		fmt.Sprintf("--join nats://%s:%d", service.Name, port); !strings.Contains(got, want) {
		t.Errorf("agents are told %q, want %q", got, want)
	}
	if *agent.Spec.CompletionMode != batchv1.IndexedCompletion || *agent.Spec.BackoffLimit != 0 {
		t.Error("agents are not an indexed job without repetition")
	}
	for role, j := range jobs {
		pod := j.Spec.Template.Spec
		for _, v := range pod.Volumes {
			if v.PersistentVolumeClaim != nil && !have["claim "+v.PersistentVolumeClaim.ClaimName] {
				t.Errorf("%s: no claim %s", role, v.PersistentVolumeClaim.ClaimName)
			}
		}
		for _, c := range pod.Containers {
			for _, m := range c.VolumeMounts {
				found := false
				for _, v := range pod.Volumes {
					found = found || v.Name == m.Name
				}
				if !found {
					t.Errorf("%s: no volume %s", role, m.Name)
				}
			}
		}
	}
}
