package seam

import (
	"context"
	"net/http"
	"strings"
	"time"

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
	// size is the size of the response in bytes.
	size int
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
		got.size = len(r.Data)
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

// Bounds of a whole list, so that a server whose list does not end costs neither memory nor a worker.
const (
	// maxPages bounds the pages.
	maxPages = 200
	// maxListSize bounds the responses in bytes. The description of a device takes about 2 kB.
	maxListSize = 128 << 20
	// listTimeout bounds the time for all pages.
	listTimeout = 3 * time.Minute
	// maxCursorSize bounds the cursor of a page in bytes.
	maxCursorSize = 4 << 10
)

// listPages reads all pages of a list. page returns where to decode a page, and add receives each decoded page. A list
// beyond the bounds fails with Transient.
func (a *Adapter) listPages(
	ctx context.Context,
	path string,
	params map[string]any,
	page func() (into any, cursor *pagination),
	add func() error,
) error {
	limited, cancel := context.WithTimeout(ctx, a.listTimeout)
	defer cancel()
	size, last := 0, ""
	for range maxPages {
		into, cursor := page()
		got, err := a.do(limited, call{path: path, body: params}, into)
		if err != nil && limited.Err() != nil && ctx.Err() == nil {
			return adapter.Errorf(adapter.Transient, "the list of %s takes longer than %s", path, a.listTimeout)
		}
		if err != nil {
			return err
		}
		if err := add(); err != nil {
			return err
		}
		next := cursor.NextPageCursor
		size += got.size
		switch {
		case !cursor.HasNextPage || next == "":
			return nil
		case next == last || len(next) > maxCursorSize:
			return adapter.Errorf(adapter.Transient, "the list of %s has a page that leads to no other one", path)
		case size > a.maxListSize:
			return adapter.Errorf(adapter.Transient, "the list of %s is larger than %d bytes", path, a.maxListSize)
		}
		params["page_cursor"], last = next, next
	}
	return adapter.Errorf(adapter.Transient, "the list of %s has more than %d pages", path, maxPages)
}

// pagination is the end of a page. Servers without pages omit it.
type pagination struct {
	HasNextPage    bool   `json:"has_next_page"`
	NextPageCursor string `json:"next_page_cursor"`
}
