// Shaders with one invocation for each index: Recorder::dispatch_linear.
layout(local_size_x = 64) in;

uint linear_index() {
    return (gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x) * 64u +
           gl_LocalInvocationID.x;
}
