package rest

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
)

const jsonType = "application/json"

// commonResponses has the responses of all operations with a credential, by status.
var commonResponses = map[string]string{"403": "Forbidden", "413": "PayloadTooLarge", "429": "TooManyRequests"}

// Document returns the validated contract. Each method of `x-methods` is a separate operation, and each operation
// lists the responses that all operations can return.
func Document() (*openapi3.T, error) {
	doc, err := openapi3.NewLoader().LoadFromData(api.OpenAPI)
	if err != nil {
		return nil, fmt.Errorf("load the contract: %w", err)
	}
	for path, item := range doc.Paths.Map() {
		if item.Post != nil && !isPublic(item.Post) {
			item.Post.Responses = withAnswers(doc, item.Post.Responses, commonResponses)
		}
		if err := expandKey(doc, item); err != nil {
			return nil, fmt.Errorf("contract of %s: %w", path, err)
		}
		if err := expand(item); err != nil {
			return nil, fmt.Errorf("contract of %s: %w", path, err)
		}
	}
	if err := doc.Validate(context.Background()); err != nil {
		return nil, fmt.Errorf("validate the contract: %w", err)
	}
	return doc, nil
}

// contract is the part of the contract that the edge needs.
type contract struct {
	operations map[string]*operation // by path
	document   []byte                // as JSON
}

// compiled is the contract of all handlers of this process.
var compiled = sync.OnceValues(func() (c contract, err error) {
	doc, err := Document()
	if err != nil {
		return c, err
	}
	if c.operations, err = compileOperations(doc); err != nil {
		return c, err
	}
	if c.document, err = json.Marshal(doc); err != nil {
		return c, fmt.Errorf("write the contract as JSON: %w", err)
	}
	return c, nil
})

// isPublic reports whether an operation needs no credential.
func isPublic(op *openapi3.Operation) bool {
	return op.Security != nil &&
		slices.ContainsFunc(*op.Security, func(r openapi3.SecurityRequirement) bool { return len(r) == 0 })
}

// keyResponses has the additional responses of operations with an Idempotency-Key, by status.
var keyResponses = map[string]string{"409": "Conflict", "422": "KeyReused"}

// expandKey replaces `x-idempotency-key` of the POST by its parameter and responses.
func expandKey(doc *openapi3.T, item *openapi3.PathItem) error {
	post := item.Post
	if post == nil || post.Extensions["x-idempotency-key"] == nil {
		return nil
	}
	if post.Extensions["x-idempotency-key"] != true {
		return fmt.Errorf("x-idempotency-key is true or left out")
	}
	delete(post.Extensions, "x-idempotency-key")
	const name = "IdempotencyKey"
	post.Parameters = append(post.Parameters, &openapi3.ParameterRef{
		Ref:   "#/components/parameters/" + name,
		Value: doc.Components.Parameters[name].Value,
	})
	post.Responses = withAnswers(doc, post.Responses, keyResponses)
	return nil
}

// withAnswers returns a copy of the responses with more added. Operations share responses.
func withAnswers(doc *openapi3.T, responses *openapi3.Responses, more map[string]string) *openapi3.Responses {
	all := openapi3.NewResponsesWithCapacity(responses.Len() + len(more))
	for status, response := range responses.Map() {
		all.Set(status, response)
	}
	for status, name := range more {
		if all.Value(status) == nil {
			all.Set(status, &openapi3.ResponseRef{
				Ref:   "#/components/responses/" + name,
				Value: doc.Components.Responses[name].Value,
			})
		}
	}
	return all
}

// expand replaces `x-methods` of the POST by operations.
func expand(item *openapi3.PathItem) error {
	post := item.Post
	if post == nil || len(item.Operations()) != 1 {
		return fmt.Errorf("declare only a POST; list the other methods in x-methods")
	}
	methods, _ := post.Extensions["x-methods"].([]any)
	delete(post.Extensions, "x-methods")
	for _, listed := range methods {
		method := fmt.Sprint(listed)
		also := *post
		also.OperationID = post.OperationID + title(method)
		switch method {
		case http.MethodPatch, http.MethodPut:
		case http.MethodGet, http.MethodDelete:
			also.RequestBody = nil
			also.Parameters = append(queryParameters(bodySchema(post).Value), post.Parameters...)
		default:
			return fmt.Errorf("x-methods has %s", method)
		}
		item.SetOperation(method, &also)
	}
	return nil
}

// queryParameters returns the properties of a body as query parameters.
func queryParameters(body *openapi3.Schema) openapi3.Parameters {
	var parameters openapi3.Parameters
	for _, name := range slices.Sorted(maps.Keys(body.Properties)) {
		schema := body.Properties[name]
		description := schema.Value.Description
		if schema.Value.Type.Is("object") {
			description += fmt.Sprintf(" Written `%s.key=value`.", name)
		}
		parameters = append(parameters, &openapi3.ParameterRef{Value: &openapi3.Parameter{
			Name:        name,
			In:          openapi3.ParameterInQuery,
			Description: description,
			Required:    slices.Contains(body.Required, name),
			Schema:      schema,
		}})
	}
	return parameters
}

// bodySchema returns the schema of an operation's JSON body, or nil.
func bodySchema(op *openapi3.Operation) *openapi3.SchemaRef {
	if op.RequestBody == nil {
		return nil
	}
	if media := op.RequestBody.Value.Content.Get(jsonType); media != nil {
		return media.Schema
	}
	return nil
}

func title(method string) string { return method[:1] + strings.ToLower(method[1:]) }

// serveDocument serves GET /openapi.json.
func (e *edge) serveDocument(document []byte) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			e.fail(w, r, methodNotAllowed([]string{http.MethodGet}))
			return
		}
		w.Header().Set("Content-Type", jsonUTF8)
		w.Header().Set("Cache-Control", "no-cache")
		_, _ = w.Write(document)
	}
}
