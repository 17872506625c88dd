package contracttest_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/contracttest"
)

const description = `
openapi: 3.0.3
info: {title: t, version: "1"}
paths:
  /locks/{id}/name:
    post:
      parameters: [{name: id, in: path, required: true, schema: {type: integer}}]
      requestBody:
        required: true
        content:
          application/x-www-form-urlencoded:
            schema: {type: object, required: [name], additionalProperties: false, properties: {name: {type: string, maxLength: 5}}}
      responses:
        "200":
          description: ok
          content:
            application/json:
              schema: {type: object, required: [ok], additionalProperties: false, properties: {ok: {type: boolean}}}
`

// recorder collects the errors of a judged exchange.
type recorder struct {
	testing.TB
	errors []string
}

func (r *recorder) Helper() {}
func (r *recorder) Errorf(format string, args ...any) {
	r.errors = append(r.errors, fmt.Sprintf(format, args...))
}

// Each kind of violation is an error of the test, and names its side. A marked response is none.
func TestJudge_ReportsBothSides(t *testing.T) {
	t.Parallel()
	j := contracttest.Open(t, []byte(description))
	for name, c := range map[string]struct {
		path, form, answer string
		deviates           bool
		want               string
	}{
		"both are right":         {path: "/locks/7/name", form: "name=Door", answer: `{"ok":true}`},
		"unknown path":           {path: "/doors/7", form: "name=Door", answer: `{}`, want: "lacks"},
		"a field is too long":    {path: "/locks/7/name", form: "name=81428142", answer: `{"ok":true}`, want: "request"},
		"a field is unknown":     {path: "/locks/7/name", form: "name=a&b=c", answer: `{"ok":true}`, want: "request"},
		"a field is missing":     {path: "/locks/7/name", form: "", answer: `{"ok":true}`, want: "request"},
		"an identifier is wrong": {path: "/locks/x/name", form: "name=a", answer: `{"ok":true}`, want: "request"},
		"the response is wrong":  {path: "/locks/7/name", form: "name=a", answer: `{"ok":1}`, want: "response"},
		"the response deviates":  {path: "/locks/7/name", form: "name=a", answer: `<html>`, deviates: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fake := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.FormValue("name") == "" && c.form != "" {
					t.Error("the fake does not receive the body")
				}
				w.Header().Set("Content-Type", "application/json")
				if c.deviates {
					w.Header().Set(contracttest.Deviates, "yes")
				}
				fmt.Fprint(w, c.answer)
			})
			rec := &recorder{TB: t}
			req := httptest.NewRequest(http.MethodPost, c.path, strings.NewReader(c.form))
			req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			answer := httptest.NewRecorder()
			j.Handler(rec, fake).ServeHTTP(answer, req)
			got := strings.Join(rec.errors, "\n")
			if c.want == "" && got != "" || !strings.Contains(got, c.want) {
				t.Errorf("the judge reports %q, and should report %q", got, c.want)
			}
			if pin := url.QueryEscape("81428142"); strings.Contains(got, pin) {
				t.Error("the report contains a PIN")
			}
			if answer.Header().Get(contracttest.Deviates) != "" {
				t.Error("the mark reaches the adapter")
			}
		})
	}
}
