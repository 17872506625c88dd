package seam

import (
	"context"
	"net/http"
	"strings"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/vendorhttp"
)

// ViaHeader names the workspaces that a request comes from, so that a server refuses to become its own upstream.
const ViaHeader = "Device-Access-Via"

// call is one request.
type call struct {
	path string
	body any
	// write means that the request changes something.
	write bool
	// key is the Idempotency-Key; empty: none. The hosted API ignores it.
	key string
}

// answer describes a successful response.
type answer struct {
	// replayed means that the server repeats what it answered to an earlier request with the same key.
	replayed bool
}

// do sends the request and decodes the response into out, which may be nil. It fails like vendorhttp.Client.Do.
func (a *Adapter) do(ctx context.Context, c call, out any) (got answer, err error) {
	client := *a.client
	client.Words = strings.Split(c.path, "/") // paths have no identifiers
	request := vendorhttp.Call{
		Method:         http.MethodPost,
		Path:           c.path,
		JSON:           c.body,
		IdempotencyKey: c.key,
		Write:          c.write,
	}
	err = client.Do(ctx, request, func(r vendorhttp.Response) error {
		got.replayed = r.Header.Get("Idempotency-Replayed") == "true"
		switch {
		case !r.OK():
			return a.classify(request, r)
		case out != nil:
			return vendorhttp.Decode(request, r.Data, out)
		}
		return nil
	})
	return got, err
}

// read sends a request that changes nothing.
func (a *Adapter) read(ctx context.Context, path string, body, out any) error {
	_, err := a.do(ctx, call{path: path, body: body}, out)
	return err
}

// maxPages bounds the pages of a list.
const maxPages = 200

// listPages reads all pages of a list. page returns where to decode a page, and add receives each decoded page.
func (a *Adapter) listPages(
	ctx context.Context,
	path string,
	params map[string]any,
	page func() (into any, cursor *pagination),
	add func() error,
) error {
	for range maxPages {
		into, cursor := page()
		if err := a.read(ctx, path, params, into); err != nil {
			return err
		}
		if err := add(); err != nil {
			return err
		}
		if !cursor.HasNextPage || cursor.NextPageCursor == "" {
			return nil
		}
		params["page_cursor"] = cursor.NextPageCursor
	}
	return adapter.Errorf(adapter.Transient, "the list of %s has more than %d pages", path, maxPages)
}

// pagination is the end of a page. Servers without pages omit it.
type pagination struct {
	HasNextPage    bool   `json:"has_next_page"`
	NextPageCursor string `json:"next_page_cursor"`
}
