package provider

import (
	"context"
	"iter"

	"github.com/hashicorp/terraform-plugin-framework/list"
)

// listResults converts records to results of terraform query, up to its limit. An error ends the results and is a
// result itself: Terraform drops errors that are reported in other ways.
func listResults[T any](
	ctx context.Context,
	req list.ListRequest,
	action string,
	records iter.Seq2[T, error],
	fill func(T, *list.ListResult),
) iter.Seq[list.ListResult] {
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
