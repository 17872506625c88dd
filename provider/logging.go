package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-log/tflog"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
)

// logTry logs an attempt of a request and its outcome.
func logTry(ctx context.Context, try api.Try) {
	fields := map[string]any{"method": try.Method, "path": try.Path, "milliseconds": try.Took.Milliseconds()}
	if try.Err != "" {
		fields["error"] = try.Err
		tflog.Warn(ctx, "request failed", fields)
		return
	}
	fields["status"], fields["request_id"] = try.Status, try.RequestID
	tflog.Debug(ctx, "request answered", fields)
}
