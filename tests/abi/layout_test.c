/*
 * The layout of every public struct on 64-bit systems, field by field, as hosts have compiled it into themselves. A
 * line here may be added at the end of its struct; none may change. No byte is left implicit: a field starts where the
 * one before ends, and the last ends where the struct does.
 */
#include <inlay/inlay.h>

#define STRUCT(type, size) _Static_assert(sizeof(type) == (size), #type " changed its size")
#define FIELD(type, field, offset, size)                                          \
    _Static_assert(offsetof(type, field) == (offset), #type "." #field " moved"); \
    _Static_assert(sizeof(((type*)0)->field) == (size), #type "." #field " changed its size")

STRUCT(inlay_workers_options, 16);
FIELD(inlay_workers_options, struct_size, 0, 4);
FIELD(inlay_workers_options, flags, 4, 4);
FIELD(inlay_workers_options, n_threads, 8, 4);
FIELD(inlay_workers_options, reserved, 12, 4);

STRUCT(inlay_model_source, 48);
FIELD(inlay_model_source, struct_size, 0, 4);
FIELD(inlay_model_source, n_parts, 4, 4);
FIELD(inlay_model_source, part_sizes, 8, 8);
FIELD(inlay_model_source, blocks, 16, 8);
FIELD(inlay_model_source, read, 24, 8);
FIELD(inlay_model_source, user, 32, 8);
FIELD(inlay_model_source, on_release, 40, 8);

STRUCT(inlay_page_provider, 56);
FIELD(inlay_page_provider, struct_size, 0, 4);
FIELD(inlay_page_provider, reserved, 4, 4);
FIELD(inlay_page_provider, user, 8, 8);
FIELD(inlay_page_provider, reserve, 16, 8);
FIELD(inlay_page_provider, commit, 24, 8);
FIELD(inlay_page_provider, decommit, 32, 8);
FIELD(inlay_page_provider, release, 40, 8);
FIELD(inlay_page_provider, on_release, 48, 8);

STRUCT(inlay_logger, 32);
FIELD(inlay_logger, struct_size, 0, 4);
FIELD(inlay_logger, level, 4, 4);
FIELD(inlay_logger, log, 8, 8);
FIELD(inlay_logger, user, 16, 8);
FIELD(inlay_logger, on_release, 24, 8);

STRUCT(inlay_engine_options, 64);
FIELD(inlay_engine_options, struct_size, 0, 4);
FIELD(inlay_engine_options, flags, 4, 4);
FIELD(inlay_engine_options, n_threads, 8, 4);
FIELD(inlay_engine_options, compute, 12, 4);
FIELD(inlay_engine_options, instruction_set, 16, 4);
FIELD(inlay_engine_options, max_step_tokens, 20, 4);
FIELD(inlay_engine_options, progress, 24, 8);
FIELD(inlay_engine_options, progress_user, 32, 8);
FIELD(inlay_engine_options, workers, 40, 8);
FIELD(inlay_engine_options, pages, 48, 8);
FIELD(inlay_engine_options, logger, 56, 8);

STRUCT(inlay_engine_info, 96);
FIELD(inlay_engine_info, struct_size, 0, 4);
FIELD(inlay_engine_info, n_vocabulary, 4, 4);
FIELD(inlay_engine_info, n_layers, 8, 4);
FIELD(inlay_engine_info, n_embedding, 12, 4);
FIELD(inlay_engine_info, n_heads, 16, 4);
FIELD(inlay_engine_info, n_kv_heads, 20, 4);
FIELD(inlay_engine_info, head_dim, 24, 4);
FIELD(inlay_engine_info, context_tokens, 28, 4);
FIELD(inlay_engine_info, n_threads, 32, 4);
FIELD(inlay_engine_info, compute, 36, 4);
FIELD(inlay_engine_info, instruction_set, 40, 4);
FIELD(inlay_engine_info, max_step_tokens, 44, 4);
FIELD(inlay_engine_info, n_tensors, 48, 8);
FIELD(inlay_engine_info, n_parameters, 56, 8);
FIELD(inlay_engine_info, file_bytes, 64, 8);
FIELD(inlay_engine_info, weight_bytes, 72, 8);
FIELD(inlay_engine_info, scratch_bytes, 80, 8);
FIELD(inlay_engine_info, n_steps, 88, 8);

STRUCT(inlay_cache_options, 32);
FIELD(inlay_cache_options, struct_size, 0, 4);
FIELD(inlay_cache_options, flags, 4, 4);
FIELD(inlay_cache_options, bytes, 8, 8);
FIELD(inlay_cache_options, key_type, 16, 4);
FIELD(inlay_cache_options, value_type, 20, 4);
FIELD(inlay_cache_options, when_full, 24, 4);
FIELD(inlay_cache_options, reserved, 28, 4);

STRUCT(inlay_cache_stats, 120);
FIELD(inlay_cache_stats, struct_size, 0, 4);
FIELD(inlay_cache_stats, block_tokens, 4, 4);
FIELD(inlay_cache_stats, budget_bytes, 8, 8);
FIELD(inlay_cache_stats, block_bytes, 16, 8);
FIELD(inlay_cache_stats, n_blocks, 24, 8);
FIELD(inlay_cache_stats, n_used_blocks, 32, 8);
FIELD(inlay_cache_stats, n_cached_blocks, 40, 8);
FIELD(inlay_cache_stats, n_free_blocks, 48, 8);
FIELD(inlay_cache_stats, n_shared_blocks, 56, 8);
FIELD(inlay_cache_stats, used_bytes, 64, 8);
FIELD(inlay_cache_stats, table_bytes, 72, 8);
FIELD(inlay_cache_stats, n_prefix_hits, 80, 8);
FIELD(inlay_cache_stats, n_reused_tokens, 88, 8);
FIELD(inlay_cache_stats, n_evicted_blocks, 96, 8);
FIELD(inlay_cache_stats, n_promised_blocks, 104, 8);
FIELD(inlay_cache_stats, n_preemptions, 112, 8);

STRUCT(inlay_session_options, 24);
FIELD(inlay_session_options, struct_size, 0, 4);
FIELD(inlay_session_options, context_tokens, 4, 4);
FIELD(inlay_session_options, cache_salt, 8, 8);
FIELD(inlay_session_options, reserve_tokens, 16, 8);

STRUCT(inlay_generation_options, 40);
FIELD(inlay_generation_options, struct_size, 0, 4);
FIELD(inlay_generation_options, flags, 4, 4);
FIELD(inlay_generation_options, seed, 8, 8);
FIELD(inlay_generation_options, temperature, 16, 4);
FIELD(inlay_generation_options, top_p, 20, 4);
FIELD(inlay_generation_options, min_p, 24, 4);
FIELD(inlay_generation_options, top_k, 28, 4);
FIELD(inlay_generation_options, max_new_tokens, 32, 8);

STRUCT(inlay_chunk, 40);
FIELD(inlay_chunk, struct_size, 0, 4);
FIELD(inlay_chunk, finish_reason, 4, 4);
FIELD(inlay_chunk, tokens, 8, 8);
FIELD(inlay_chunk, n_tokens, 16, 8);
FIELD(inlay_chunk, text, 24, 8);
FIELD(inlay_chunk, text_size, 32, 8);

STRUCT(inlay_load_result, 32);
FIELD(inlay_load_result, struct_size, 0, 4);
FIELD(inlay_load_result, is_shared, 4, 4);
FIELD(inlay_load_result, same_numerics, 8, 4);
FIELD(inlay_load_result, reserved, 12, 4);
FIELD(inlay_load_result, n_tokens, 16, 8);
FIELD(inlay_load_result, n_computed_tokens, 24, 8);

STRUCT(inlay_cache_load_result, 32);
FIELD(inlay_cache_load_result, struct_size, 0, 4);
FIELD(inlay_cache_load_result, reserved, 4, 4);
FIELD(inlay_cache_load_result, first_pin, 8, 8);
FIELD(inlay_cache_load_result, n_pins, 16, 8);
FIELD(inlay_cache_load_result, n_tokens, 24, 8);

STRUCT(inlay_session_stats, 72);
FIELD(inlay_session_stats, struct_size, 0, 4);
FIELD(inlay_session_stats, reserved, 4, 4);
FIELD(inlay_session_stats, n_prompt_tokens, 8, 8);
FIELD(inlay_session_stats, n_reused_tokens, 16, 8);
FIELD(inlay_session_stats, n_computed_tokens, 24, 8);
FIELD(inlay_session_stats, n_recomputed_tokens, 32, 8);
FIELD(inlay_session_stats, n_generated_tokens, 40, 8);
FIELD(inlay_session_stats, n_steps, 48, 8);
FIELD(inlay_session_stats, prompt_ns, 56, 8);
FIELD(inlay_session_stats, generation_ns, 64, 8);

STRUCT(inlay_estimate_options, 24);
FIELD(inlay_estimate_options, struct_size, 0, 4);
FIELD(inlay_estimate_options, context_tokens, 4, 4);
FIELD(inlay_estimate_options, key_type, 8, 4);
FIELD(inlay_estimate_options, value_type, 12, 4);
FIELD(inlay_estimate_options, max_step_tokens, 16, 4);
FIELD(inlay_estimate_options, n_threads, 20, 4);

STRUCT(inlay_estimate, 56);
FIELD(inlay_estimate, struct_size, 0, 4);
FIELD(inlay_estimate, context_tokens, 4, 4);
FIELD(inlay_estimate, weight_bytes, 8, 8);
FIELD(inlay_estimate, kv_bytes_per_token, 16, 8);
FIELD(inlay_estimate, kv_bytes, 24, 8);
FIELD(inlay_estimate, scratch_bytes, 32, 8);
FIELD(inlay_estimate, tokenizer_bytes, 40, 8);
FIELD(inlay_estimate, total_bytes, 48, 8);

int main(void) {
    return 0;
}
