package provider

import (
	"context"
	"iter"

	"github.com/hashicorp/terraform-plugin-framework/list"
)

// results makes of records what terraform query takes, no more than it wants. An error ends them, and is a result of
// its own: told in any other way it would be lost.
func results[T any](ctx context.Context, req list.ListRequest, action string, records iter.Seq2[T, error], fill func(T, *list.ListResult)) iter.Seq[list.ListResult] {
	return func(push func(list.ListResult) bool) {
		pushed := int64(0)
		for record, err := range records {
			if err != nil {
				var failed list.ListResult
				report(&failed.Diagnostics, action, err)
				push(failed)
				return
			}
			result := req.NewListResult(ctx)
			fill(record, &result)
			pushed++
			if !push(result) || pushed == req.Limit {
				return
			}
		}
	}
}
