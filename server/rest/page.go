package rest

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
)

// pageCursor is the cursor parameter of lists.
const pageCursor = "page_cursor"

// pager decodes and encodes page cursors.
type pager struct {
	keys           func() [][]byte // the current one first
	publicURL      *url.URL
	trustForwarded bool
}

// page is a page of a list of a workspace.
type page struct {
	domain.Page

	pager    *pager
	exchange *requestContext
	query    map[string]any // the parameters of the list, without the cursor
	list     [][]byte       // what identifies the list
}

// open returns the page that the request asks for. It returns an error if the cursor is invalid or belongs to other
// parameters.
func (p *pager) open(ctx context.Context, limit int) (page, error) {
	x := exchangeOf(ctx)
	opened := page{
		Page:     domain.Page{Limit: x.operation.capLimit(limit)},
		pager:    p,
		exchange: x,
		query:    maps.Clone(x.params),
	}
	delete(opened.query, pageCursor)
	// Without defaults, cursors stay valid when parameters or defaults change.
	params, _ := canonical(x.operation.body, opened.query, false)
	opened.list = [][]byte{x.principal.WorkspaceID[:], []byte(x.operation.path), params}
	cursor, _ := x.params[pageCursor].(string)
	if cursor == "" {
		return opened, nil
	}
	var err error
	opened.After, err = p.unseal(cursor, opened.list)
	return opened, err
}

// pagination describes the next page after the last row of this one.
func (p page) pagination(more bool, last domain.Position) api.Pagination {
	if !more {
		return api.Pagination{}
	}
	cursor := p.pager.seal(last, p.list)
	return api.Pagination{HasNextPage: true, NextPageCursor: &cursor, NextPageURL: p.nextURL(cursor)}
}

// nextURL returns the URL of the next page for GET, or nil if a query string cannot express the parameters.
func (p page) nextURL(cursor string) *string {
	shape := p.exchange.operation.body
	query := formatQuery(shape, p.query)
	query.Set(strictParameter, "true")
	read, err := parseQuery(query.Encode(), shape)
	if err != nil {
		return nil
	}
	want, _ := canonical(shape, p.query, false)
	if got, _ := canonical(shape, read, false); !bytes.Equal(got, want) {
		return nil
	}
	query.Set(pageCursor, cursor)
	next := p.pager.base(p.exchange.request).JoinPath(p.exchange.operation.path)
	next.RawQuery = query.Encode()
	text := next.String()
	return &text
}

// base returns the URL of the service for the caller of a request.
func (p *pager) base(r *http.Request) *url.URL {
	if p.publicURL != nil {
		return p.publicURL
	}
	base := &url.URL{Scheme: "http", Host: r.Host}
	if r.TLS != nil {
		base.Scheme = "https"
	}
	if !p.trustForwarded {
		return base
	}
	if proto := firstOf(r.Header.Get("X-Forwarded-Proto")); proto == "http" || proto == "https" {
		base.Scheme = proto
	}
	if host := firstOf(r.Header.Get("X-Forwarded-Host")); host != "" {
		base.Host = host
	}
	return base
}

// firstOf returns the first element of a header that each proxy appends to.
func firstOf(list string) string {
	first, _, _ := strings.Cut(list, ",")
	return strings.TrimSpace(first)
}

// A cursor, before base64:
//
//	1 version | 8 microseconds since 1970 | 16 id | 16 digest of the list | 16 digest of all that
//
// The list is the workspace, the path and the parameters. Cursors stay valid as long as the key is accepted.
const (
	cursorVersion = 1
	cursorSize    = 57
	digestSize    = 16
)

var cursorText = base64.RawURLEncoding

func (p *pager) seal(at domain.Position, list [][]byte) string {
	key := p.keys()[0]
	b := make([]byte, 0, cursorSize)
	b = append(b, cursorVersion)
	b = binary.BigEndian.AppendUint64(b, uint64(at.At.UnixMicro()))
	b = append(b, at.ID[:]...)
	b = append(b, digest(key, "list", list...)...)
	b = append(b, digest(key, "cursor", b)...)
	return cursorText.EncodeToString(b)
}

func (p *pager) unseal(cursor string, list [][]byte) (at domain.Position, err error) {
	b, err := cursorText.DecodeString(cursor)
	var key []byte
	if err == nil && len(b) == cursorSize && b[0] == cursorVersion {
		key = p.signer(b)
	}
	if key == nil {
		return at, invalid([]issue{{path: []string{pageCursor}, message: "Invalid cursor"}})
	}
	if !bytes.Equal(b[25:41], digest(key, "list", list...)) {
		return at, &failure{
			status: http.StatusBadRequest, kind: "mismatched_page_parameters",
			message: "When using next_page_cursor, the request must send parameters identical to the initial request.",
		}
	}
	at.At = time.UnixMicro(int64(binary.BigEndian.Uint64(b[1:9]))).UTC()
	copy(at.ID[:], b[9:25])
	return at, nil
}

// signer returns the key that made the last digest of a cursor, or nil.
func (p *pager) signer(cursor []byte) []byte {
	for _, key := range p.keys() {
		if hmac.Equal(cursor[41:], digest(key, "cursor", cursor[:41])) {
			return key
		}
	}
	return nil
}

// digest is keyed. It distinguishes its purposes and the boundaries of its parts.
func digest(key []byte, purpose string, parts ...[]byte) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(purpose))
	for _, part := range parts {
		var size [8]byte
		binary.BigEndian.PutUint64(size[:], uint64(len(part)))
		h.Write(size[:])
		h.Write(part)
	}
	return h.Sum(nil)[:digestSize]
}
