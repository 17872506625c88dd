package provider

import (
	"context"
	"time"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"

	"github.com/deviceaccess/terraform-provider-deviceaccess/provider/validators"
)

// defaultTimeout is how long an operation waits for a lock. Battery-powered locks wake up every few minutes.
const defaultTimeout = 5 * time.Minute

// timeoutsBlock returns the block timeouts of a resource. Each timeout must be longer than zero.
func timeoutsBlock(ctx context.Context, opts timeouts.Opts) schema.Block {
	block := timeouts.Block(ctx, opts).(schema.SingleNestedBlock)
	block.Validators = append(block.Validators, validators.PositiveTimeouts{})
	return block
}
