// Package deploy checks the compose file and the Helm chart with the program of `make package`. It is a module of its own,
// because Helm has many dependencies.
package deploy

import (
	"bufio"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	goruntime "runtime"
	"slices"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/cli"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"helm.sh/helm/v3/pkg/lint"
	"helm.sh/helm/v3/pkg/lint/support"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"
)

const (
	composeFile = "../../packaging/compose/compose.yaml"
	chartDir    = "../../packaging/helm/deviceaccess-server"
)

// The compose file is valid, only the proxy has ports, and secrets are files.
func TestCompose(t *testing.T) {
	t.Parallel()
	options, err := cli.NewProjectOptions([]string{composeFile}, cli.WithProfiles([]string{"zigbee"}),
		cli.WithEnv([]string{"DOMAIN=locks.example.com"}))
	if err != nil {
		t.Fatal(err)
	}
	project, err := options.LoadProject(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	names := project.ServiceNames()
	slices.Sort(names)
	if want := []string{"db", "mosquitto", "proxy", "server", "zigbee2mqtt"}; !slices.Equal(names, want) {
		t.Errorf("the services are %v, expected %v", names, want)
	}
	for name, s := range project.Services {
		if published := len(s.Ports) > 0; published != (name == "proxy") {
			t.Errorf("%s has %d published ports", name, len(s.Ports))
		}
		for variable := range s.Environment {
			secret := strings.HasSuffix(variable, "PASSWORD") || strings.HasSuffix(variable, "KEY") ||
				strings.HasSuffix(variable, "DATABASE_URL")
			if secret {
				t.Errorf("%s has a secret in %s", name, variable)
			}
		}
	}
}

// render returns the objects of the chart by kind.
func render(t *testing.T, values map[string]any) map[string]runtime.Object {
	t.Helper()
	chart, err := loader.Load(chartDir)
	if err != nil {
		t.Fatal(err)
	}
	all, err := chartutil.ToRenderValues(
		chart,
		values,
		chartutil.ReleaseOptions{Name: "locks", Namespace: "default"},
		nil,
	)
	if err != nil {
		t.Fatal(err)
	}
	files, err := engine.Render(chart, all)
	if err != nil {
		t.Fatal(err)
	}
	objects := map[string]runtime.Object{}
	for path, text := range files {
		if filepath.Ext(path) != ".yaml" {
			continue
		}
		reader := utilyaml.NewYAMLReader(bufio.NewReader(strings.NewReader(text)))
		for {
			document, err := reader.Read()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			if strings.TrimSpace(string(document)) == "" {
				continue
			}
			var meta runtime.TypeMeta
			if err := yaml.Unmarshal(document, &meta); err != nil {
				t.Fatalf("%s: %v\n%s", path, err, document)
			}
			object, err := scheme.Scheme.New(schema.FromAPIVersionAndKind(meta.APIVersion, meta.Kind))
			if err != nil {
				t.Fatalf("%s: %v", path, err)
			}
			if err := yaml.UnmarshalStrict(document, object); err != nil {
				t.Errorf("%s is no %s: %v\n%s", path, meta.Kind, err, document)
			}
			objects[meta.Kind] = object
		}
	}
	return objects
}

// The chart passes helm lint, and its objects have only fields of their kinds in the Kubernetes API.
func TestChart(t *testing.T) {
	t.Parallel()
	for _, m := range lint.All(chartDir, nil, "default", true).Messages {
		if m.Severity > support.InfoSev {
			t.Errorf("helm lint: %s", m)
		}
	}
	for name, c := range map[string]struct {
		values map[string]any
		kinds  []string
	}{
		"default": {nil, []string{"ConfigMap", "Deployment", "PodDisruptionBudget", "Service"}},
		"all": {map[string]any{
			"ingress":          map[string]any{"enabled": true, "className": "nginx", "annotations": map[string]any{"a": "b"}},
			"config":           map[string]any{"connect-gateways": true, "allow-webhook-prefix": []any{"10.0.0.0/8"}},
			"imagePullSecrets": []any{map[string]any{"name": "registry"}},
			"nodeSelector":     map[string]any{"a": "b"},
			"tolerations":      []any{map[string]any{"key": "a", "operator": "Exists"}},
		}, []string{"ConfigMap", "Deployment", "Ingress", "PodDisruptionBudget", "Service"}},
		"one server": {map[string]any{
			"replicas": 1,
			"metrics":  map[string]any{"enabled": false},
		}, []string{"ConfigMap", "Deployment", "Service"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			objects := render(t, c.values)
			var kinds []string
			for kind := range objects {
				kinds = append(kinds, kind)
			}
			if slices.Sort(kinds); !slices.Equal(kinds, c.kinds) {
				t.Errorf("the objects are %v, expected %v", kinds, c.kinds)
			}
			config, ok := objects["ConfigMap"].(*corev1.ConfigMap)
			if !ok {
				t.Fatal("there is no configuration")
			}
			checkConfig(t, config.Data["config.yaml"])
		})
	}
}

// checkConfig lets the server read a configuration. Its database is out of reach.
func checkConfig(t *testing.T, config string) {
	t.Helper()
	dir := t.TempDir()
	for name, content := range map[string]string{
		"database-url": "postgres://127.0.0.1:1/none",
		"master-key":   "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=",
		"config.yaml":  strings.ReplaceAll(config, "/etc/deviceaccess/secrets", dir),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	// Exit code 2 is for wrong settings.
	cmd := exec.CommandContext(
		t.Context(),
		"../../dist/linux_"+goruntime.GOARCH+"/deviceaccess-server",
		"serve",
		"--check-config",
		"--config",
		filepath.Join(dir, "config.yaml"),
		"--data-dir",
		dir,
	)
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState.ExitCode() != 1 || !strings.Contains(string(out), "ok      settings") {
		t.Errorf("the server reads the configuration: %v %s\n%s", err, out, config)
	}
}
