package rest

import (
	"fmt"
	"net/http"
	"slices"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
)

// operation is what the edge needs to know about a path of the contract. It is computed once at startup.
type operation struct {
	path    string
	methods []string // allowed methods, POST last
	public  bool     // needs no credential
	accepts []string // the security schemes that may call it
	body    *shape   // schema of the canonical request
	keyed   bool     // accepts an Idempotency-Key

	role domain.Role // the weakest role that may call it
}

// compileOperations reads the operations of an expanded contract, by path.
func compileOperations(doc *openapi3.T) (map[string]*operation, error) {
	operations := map[string]*operation{}
	for path, item := range doc.Paths.Map() {
		op, err := compileOperation(doc, path, item)
		if err != nil {
			return nil, fmt.Errorf("contract of %s: %w", path, err)
		}
		operations[path] = op
	}
	return operations, nil
}

func compileOperation(doc *openapi3.T, path string, item *openapi3.PathItem) (*operation, error) {
	schema := bodySchema(item.Post)
	if schema == nil {
		return nil, fmt.Errorf("the POST has no JSON body")
	}
	body, err := compileShape(schema.Value)
	if err != nil {
		return nil, err
	}
	op := &operation{
		path:  path,
		body:  body,
		role:  requiredRole(path),
		keyed: item.Post.Parameters.GetByInAndName(openapi3.ParameterInHeader, keyHeader) != nil,
	}
	for _, method := range []string{http.MethodGet, http.MethodDelete, http.MethodPatch, http.MethodPut, http.MethodPost} {
		if item.GetOperation(method) != nil {
			op.methods = append(op.methods, method)
		}
	}
	security := doc.Security
	if item.Post.Security != nil {
		security = *item.Post.Security
	}
	for _, alternative := range security {
		op.public = op.public || len(alternative) == 0
		for scheme := range alternative {
			if scheme == workspaceHeader {
				continue
			}
			if !slices.Contains(schemes, scheme) {
				return nil, fmt.Errorf("security has %s, of which credentials are never", scheme)
			}
			op.accepts = append(op.accepts, scheme)
		}
	}
	return op, nil
}

// allowsMethod reports whether the operation accepts the method. HEAD is a GET without a response body.
func (o *operation) allowsMethod(method string) bool {
	return slices.Contains(o.methods, method) || method == http.MethodHead && slices.Contains(o.methods, http.MethodGet)
}
