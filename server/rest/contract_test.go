package rest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
)

func TestContractLints(t *testing.T) {
	t.Parallel()
	doc, err := Document() // it is valid
	if err != nil {
		t.Fatal(err)
	}
	l := linter{
		T:    t,
		doc:  doc,
		ids:  map[string]string{},
		tags: map[string]bool{},
	}
	if doc.Info.Version != "1.0.0" || doc.Info.Description == "" || doc.Info.License == nil {
		t.Errorf("info: %+v", doc.Info)
	}
	if len(doc.Servers) == 0 {
		t.Error("the contract names no server")
	}
	for path, item := range doc.Paths.Map() {
		for method, op := range item.Operations() {
			l.operation(method+" "+path, op)
		}
	}
	for name, item := range doc.Webhooks {
		for method, op := range item.Operations() {
			l.operation(method+" of webhook "+name, op)
		}
	}
	for _, tag := range doc.Tags {
		if !l.tags[tag.Name] || tag.Description == "" {
			t.Errorf("tag %s is not used or not described", tag.Name)
		}
	}
	for name, schema := range doc.Components.Schemas {
		l.schema(name, schema)
	}
	for name, scheme := range doc.Components.SecuritySchemes {
		l.described("security scheme "+name, scheme.Value.Description)
	}
}

type linter struct {
	*testing.T
	doc  *openapi3.T
	ids  map[string]string
	tags map[string]bool
}

func (l linter) described(where, description string) {
	if description == "" {
		l.Errorf("%s is not described", where)
	}
}

func (l linter) operation(where string, op *openapi3.Operation) {
	l.described(where, op.Summary)
	if other := l.ids[op.OperationID]; op.OperationID == "" || other != "" {
		l.Errorf("%s: the operationId %q is empty or that of %s", where, op.OperationID, other)
	}
	l.ids[op.OperationID] = where
	if len(op.Tags) != 1 || l.doc.Tags.Get(op.Tags[0]) == nil {
		l.Errorf("%s: tags %v, want one that is declared", where, op.Tags)
	}
	for _, tag := range op.Tags {
		l.tags[tag] = true
	}
	public := op.Security != nil &&
		slices.ContainsFunc(*op.Security, func(r openapi3.SecurityRequirement) bool { return len(r) == 0 })
	for status, response := range op.Responses.Map() {
		l.described(where+" "+status, *response.Value.Description)
		for _, media := range response.Value.Content {
			l.named(where+" "+status, media.Schema)
		}
	}
	for _, status := range []string{"200", "400", "401"} {
		if op.Responses.Value(status) == nil && !public {
			l.Errorf("%s lacks an answer %s", where, status)
		}
	}
	for _, parameter := range op.Parameters {
		l.described(where+" "+parameter.Value.Name, parameter.Value.Description)
	}
	if op.RequestBody != nil {
		l.named(where+" body", bodySchema(op))
	}
}

// named asks for a schema of its own name, which generated code is then called by.
func (l linter) named(where string, schema *openapi3.SchemaRef) {
	if schema == nil || !strings.HasPrefix(schema.Ref, "#/components/schemas/") {
		l.Errorf("%s: the schema of the body has no name", where)
	}
}

func (l linter) schema(where string, schema *openapi3.SchemaRef) {
	l.described(where, schema.Value.Description)
	for name, property := range schema.Value.Properties {
		l.schema(where+"."+name, property)
		if property.Ref == "" && len(property.Value.Properties) > 0 {
			l.Errorf("%s.%s is an object without a name", where, name)
		}
	}
	for _, name := range schema.Value.Required {
		if schema.Value.Properties[name] == nil {
			l.Errorf("%s requires %s, which it does not have", where, name)
		}
	}
	if items := schema.Value.Items; items != nil && items.Ref == "" && items.Value.Type.Is("object") {
		l.Errorf("%s has items without a name", where)
	}
}

// Operations that create a resource or start an attempt accept an Idempotency-Key with every method. Operations that
// read do not.
func TestCreationsAcceptIdempotencyKey(t *testing.T) {
	t.Parallel()
	doc, err := Document()
	if err != nil {
		t.Fatal(err)
	}
	for path, item := range doc.Paths.Map() {
		id := item.Post.OperationID
		answer := item.Post.Responses.Value("200").Value.Content.Get(jsonType).Schema.Value
		reads := strings.HasPrefix(id, "get") && id != "getOrCreateClientSession" || strings.HasPrefix(id, "list")
		creates := answer.Properties["action_attempt"] != nil || strings.HasPrefix(id, "create") ||
			strings.Contains(id, "Create") ||
			slices.Contains([]string{"pullBackupAccessCode", "rotateWebhookSecret", "updateMultipleAccessCodes"}, id)
		for method, op := range item.Operations() {
			takes := op.Parameters.GetByInAndName(openapi3.ParameterInHeader, keyHeader) != nil
			if want := creates && !reads; takes != want {
				t.Errorf(
					"%s %s takes an Idempotency-Key: %t, want %t; see x-idempotency-key",
					method,
					path,
					takes,
					want,
				)
			}
			for status := range op.Responses.Map() {
				if takes && status[0] == '2' && status != "200" {
					t.Errorf("%s %s answers %s, but what is repeated is answered 200", method, path, status)
				}
			}
			if takes && (op.Responses.Value("409") == nil || op.Responses.Value("422") == nil) {
				t.Errorf("%s %s does not say how a key is refused", method, path)
			}
		}
	}
}

// A contract with unchecked constraints must not start.
func TestShapesRejectUnsupportedKeywords(t *testing.T) {
	t.Parallel()
	one := 1.0
	text := func(adjust func(*openapi3.Schema)) *openapi3.Schema {
		s := openapi3.NewStringSchema()
		adjust(s)
		return openapi3.NewObjectSchema().WithProperty("x", s)
	}
	for name, schema := range map[string]*openapi3.Schema{
		"multipleOf":     text(func(s *openapi3.Schema) { s.MultipleOf = &one }),
		"unknown format": text(func(s *openapi3.Schema) { s.Format = "hostname" }),
		"no type":        text(func(s *openapi3.Schema) { s.Type = nil }),
		"oneOf":          text(func(s *openapi3.Schema) { s.OneOf = openapi3.SchemaRefs{openapi3.NewStringSchema().NewRef()} }),
		"bad pattern":    text(func(s *openapi3.Schema) { s.Pattern = "(" }),
		"enum of others": text(func(s *openapi3.Schema) { s.Enum = []any{1} }),
		"closed object":  openapi3.NewObjectSchema().WithoutAdditionalProperties(),
		"items": openapi3.NewObjectSchema().WithProperty("x", openapi3.NewArraySchema().WithItems(
			text(func(s *openapi3.Schema) { s.Format = "hostname" }))),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if s, err := compileShape(schema); err == nil {
				t.Errorf("compiled to %+v", s)
			}
		})
	}
}

func TestExpansionFollowsXMethods(t *testing.T) {
	t.Parallel()
	doc, err := Document()
	if err != nil {
		t.Fatal(err)
	}
	describe := func(path, method string) string {
		op := doc.Paths.Value(path).GetOperation(method)
		if op == nil {
			return "none"
		}
		var parameters []string
		for _, p := range op.Parameters {
			name := p.Value.Name
			if p.Value.Required {
				name += "!"
			}
			parameters = append(parameters, name)
		}
		return fmt.Sprintf("%s%v %t", op.OperationID, parameters, op.RequestBody != nil)
	}
	for _, test := range []struct{ path, method, want string }{
		{"/webhooks/delete", "POST", "deleteWebhook[] true"},
		{"/webhooks/delete", "DELETE", "deleteWebhookDelete[webhook_id!] false"},
		{"/webhooks/delete", "GET", "none"},
		{"/webhooks/update", "PUT", "updateWebhookPut[] true"},
		{"/access_codes/update", "PATCH", "updateAccessCodePatch[Idempotency-Key] true"},
		{"/access_codes/delete", "DELETE", "deleteAccessCodeDelete[access_code_id! device_id sync Idempotency-Key] false"},
		{"/access_codes/unmanaged/list", "GET", "listUnmanagedAccessCodesGet[device_id! limit page_cursor search user_identifier_key] false"},
		{"/workspaces/get", "GET", "getWorkspaceGet[] false"},
	} {
		if got := describe(test.path, test.method); got != test.want {
			t.Errorf("%s %s: %s, want %s", test.method, test.path, got, test.want)
		}
	}
	for _, bad := range []*openapi3.PathItem{
		{},
		{Post: &openapi3.Operation{}, Get: &openapi3.Operation{}},
		{Post: &openapi3.Operation{Extensions: map[string]any{"x-methods": []any{"BREW"}}}},
	} {
		if err := expand(bad); err == nil {
			t.Errorf("expanded %v", slices.Collect(maps.Keys(bad.Operations())))
		}
	}
}
