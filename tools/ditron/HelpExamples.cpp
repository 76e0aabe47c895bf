//===- HelpExamples.cpp - A command that works, in the help of each subcommand ------------------------------------===//
//
// A table by subcommand, so that what is printed can be read, and run, in one place.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "HelpExamples.h"

namespace ditron::tool {

namespace {

struct HelpExample {
  const char *command;  ///< Names of subcommands, from the outermost.
  const char *examples; ///< A command per line; a backslash continues one.
};

constexpr HelpExample table[] = {
    {"", R"(  ditron run examples/ring.py:ring --help
  ditron bench ag_gemm --m 256 --n 256 --k 64 --ranks 4 --check)"},
    {"run",
     R"(  ditron run examples/ring.py:ring --ranks 4 --arg 'x_ptr=full({rank}):fp32[100]' --constexpr BLOCK=128 --arg n=100 \
      --arg 'inbox_ptr=symm:zeros:fp32[100]' --arg 'signal_ptr=symm:zeros:i64[1]' --arg 'out_ptr=zeros:fp32[100]' \
      --print 'out_ptr[:4]' --trace ring.json)"},
    {"replay", "  ditron replay ditron-replay.json"},
    {"explain", "  ditron explain --pid 12345"},
    {"compile",
     R"(  ditron compile examples/ring.py:ring --signature '*fp32, *fp32, *i64, *fp32, i32, constexpr BLOCK=128'
  ditron compile examples/ring.py:ring --signature '*fp32, *fp32, *i64, *fp32, i32, constexpr BLOCK=128' --emit tile)"},
    {"build",
     R"(  ditron build examples/ring.py:ring --signature '*fp32, *fp32, *i64, *fp32, i32, constexpr BLOCK=128' -o ring.ditron
  ditron build --op softmax --shape 'rows=16 columns=1000' --target cuda:sm_90a --target sim -o softmax.ditron)"},
    {"inspect", R"(  ditron build --op softmax --shape 'rows=16 columns=1000' -o softmax.ditron
  ditron inspect softmax.ditron)"},
    {"bench", "  ditron bench softmax --shape 16x1000 --json softmax.json"},
    {"bench ag_gemm", "  ditron bench ag_gemm --m 256 --n 256 --k 64 --ranks 4 --check --trace ag_gemm.json"},
    {"bench gemm_ar", "  ditron bench gemm_ar --m 8 --n 128 --k 256 --ranks 4 --check"},
    {"bench gemm_rs", "  ditron bench gemm_rs --m 256 --n 128 --k 256 --ranks 4 --check --slow-rank 1:4"},
    {"bench all_reduce",
     "  ditron bench all_reduce --bytes 4K,64K --plan 'packets 8 4' --plan 'two_shot_packets 8 4' --check"},
    {"bench all_gather", "  ditron bench all_gather --bytes 16K --ranks 2 --check"},
    {"bench reduce_scatter", "  ditron bench reduce_scatter --bytes 16K --dtype fp32 --check"},
    {"bench all_to_all", "  ditron bench all_to_all --bytes 4K --check"},
    {"bench all_to_all_v", "  ditron bench all_to_all_v --ranks 4 --bytes 4K --counts random --check"},
    {"bench send_receive", "  ditron bench send_receive --ranks 4 --bytes 4K --check"},
    {"bench ag_moe",
     "  ditron bench ag_moe --tokens 64,256 --hidden 128 --inner 256 --experts 8 --top-k 2 --check --unfused"},
    {"bench moe_rs",
     "  ditron bench moe_rs --tokens 64 --hidden 128 --inner 256 --experts 8 --top-k 2 --check --slow-rank 1:4"},
    {"bench moe_ar",
     "  ditron bench moe_ar --tokens 64 --hidden 128 --inner 256 --experts 8 --top-k 2 --check --json moe_ar.json"},
    {"bench barrier", "  ditron bench barrier --ranks 4 --check"},
    {"bench ep_dispatch", "  ditron bench ep_dispatch --ranks 4 --tokens 8 --hidden 256 --experts 8 --top-k 2 --check"},
    {"bench ep_combine", "  ditron bench ep_combine --ranks 4 --tokens 8 --hidden 256 --experts 8 --top-k 2 --check"},
    {"bench ep_fused", "  ditron bench ep_fused --ranks 2 --tokens 9 --shape 48x16x4x2 --unfused --check"},
    {"bench broadcast", "  ditron bench broadcast --bytes 64K --plan 'chunks 8 4 4096' --check"},
    {"bench gemm", "  ditron bench gemm --shape 128x128x64 --json gemm.json"},
    {"bench grouped_gemm", "  ditron bench grouped_gemm --shape 60x64x48x4x2 --form gathered --json grouped_gemm.json"},
    {"bench softmax", "  ditron bench softmax --shape 16x1000 --plan 'plain warps 4' --plan 'plain warps 8'"},
    {"bench rmsnorm", "  ditron bench rmsnorm --shape 8x4096 --dtype fp16"},
    {"bench attention", "  ditron bench attention --shape 1x2x1x64x64 --no-causal"},
    {"bench attention_decode", "  ditron bench attention_decode --ranks 4 --shape 2x8x2x300x64 --page 16\n"
                               "  ditron bench attention_decode --latent --shape 2x16x1x300x576 --page 64"},
    {"bench ag_attention", "  ditron bench ag_attention --ranks 2 --shape 1x2x1x100x64 --no-causal"},
    {"bench all_reduce_rms_norm", "  ditron bench all_reduce_rms_norm --ranks 3 --rows 1,40 --columns 1024"},
    {"bench ring_attention", "  ditron bench ring_attention --ranks 3 --shape 1x2x1x100x32 --backward\n"
                             "  ditron bench ring_attention --ranks 4 --ranks-per-node 2 --shape 1x2x1x100x32"},
    {"bench attention_layer", "  ditron bench attention_layer --ranks 2 --shape 2x40x64x8x4x16 --prefill"},
    {"bench gemm_a2a", "  ditron bench gemm_a2a --ranks 4 --shape 200x64x128 --batch 2"},
    {"bench a2a_gemm", "  ditron bench a2a_gemm --ranks 2 --shape 100x64x128 --chunks 2"},
    {"bench orders", "  ditron bench orders --dtype fp32"},
    {"tune", "  ditron tune all_reduce --ranks 2 --bytes 4K --candidates 4 --out tuned.plans"},
    {"tune gemm", "  ditron tune gemm --m 64 --n 64 --k 64 --candidates 2 --out tuned.plans"},
    {"tune grouped_gemm",
     "  ditron tune grouped_gemm --tokens 20 --n 64 --k 48 --experts 4 --candidates 2 --out tuned.plans"},
    {"tune gathered_gemm",
     "  ditron tune gathered_gemm --tokens 20 --n 64 --k 48 --experts 4 --candidates 2 --out tuned.plans"},
    {"tune attention", "  ditron tune attention --queries 70 --heads 2 --head-dim 32 --candidates 2 --out tuned.plans"},
    {"tune causal_attention",
     "  ditron tune causal_attention --queries 70 --heads 2 --head-dim 32 --candidates 2 --out tuned.plans"},
    {"tune ag_gemm", "  ditron tune ag_gemm --ranks 2 --m 64 --n 64 --k 64 --candidates 2 --out tuned.plans"},
    {"tune gemm_rs", "  ditron tune gemm_rs --ranks 2 --m 64 --n 64 --k 64 --candidates 2 --out tuned.plans"},
    {"tune gemm_ar", "  ditron tune gemm_ar --ranks 2 --m 8,64 --n 64 --k 64 --candidates 2 --out tuned.plans"},
    {"tune all_reduce",
     "  ditron tune all_reduce --ranks 2 --bytes 4K --candidates 4 --out tuned.plans --plan 'packets 3 4'"},
    {"tune all_gather", "  ditron tune all_gather --ranks 2 --bytes 1K,4K --candidates 2 --out tuned.plans"},
    {"tune reduce_scatter", "  ditron tune reduce_scatter --ranks 2 --bytes 4K --candidates 2 --out tuned.plans"},
    {"tune all_to_all", "  ditron tune all_to_all --ranks 2 --bytes 4K --candidates 2 --out tuned.plans"},
    {"tune broadcast", "  ditron tune broadcast --ranks 2 --bytes 4K --candidates 2 --out tuned.plans"},
    {"tune all_reduce_rms_norm",
     "  ditron tune all_reduce_rms_norm --ranks 2 --rows 1,40 --columns 512 --candidates 2 --out tuned.plans"},
    {"predict", R"(  ditron predict ag_gemm --m 8192 --n 28672 --k 8192 --machine h200x8 --trace ag_gemm.json
  ditron predict all_reduce --bytes 1048576 --form two_shot --machine h800x8 --json)"},
    {"swizzle ag_gemm", "  ditron swizzle ag_gemm --ranks 8 --nodes 2 --m 1000 --block-m 64 --svg ag_gemm.svg"},
    {"swizzle gemm_rs", "  ditron swizzle gemm_rs --ranks 8 --m 7976 --block-m 256 --svg gemm_rs.svg"},
    {"demo", "  ditron demo --trace-folder ."},
    {"launch", "  ditron launch -n 2 sh -c 'echo rank $RANK of $WORLD_SIZE meets the others at $MASTER_ADDR'"},
    {"swizzle", "  ditron swizzle ag_gemm --m 1024 --ranks 8"},
    {"doctor", "  ditron doctor"},
    {"cache", "  ditron cache ls"},
    {"cache path", "  ditron cache path"},
    {"cache ls", "  ditron cache ls"},
    {"cache verify", "  ditron cache verify"},
    {"cache prune", "  ditron cache prune --mb 100"},
    {"knobs", "  ditron knobs"},
    {"layout", "  ditron layout tile --shape 16x32 --per-thread 4 --warps 2 --svg tile.svg"},
    {"layout tile", "  ditron layout tile --shape 16x32 --per-thread 4 --warps 2 --svg tile.svg"},
    {"layout mma", "  ditron layout mma --shape 16x8x16 --operand a"},
    {"layout wgmma", "  ditron layout wgmma --shape 64x32 --warps 4 --svg wgmma.svg"},
    {"layout fma", "  ditron layout fma --shape 16x16x4 --operand a --warps 1"},
    {"layout swizzled", "  ditron layout swizzled --shape 8x64 --bits 16 --bytes 128 --svg swizzled.svg"},
    {"layout text", "  ditron layout text '4x8, reg = {j0 i1}, lane = [j1 j2 i0], warp = []'"},
};

} // namespace

void addHelpExamples(CLI::App &app) {
  for (const HelpExample &row : table) {
    CLI::App *command = &app;
    std::string_view names = row.command;
    while (!names.empty() && command) {
      const size_t end = std::min(names.find(' '), names.size());
      const std::string_view name = names.substr(0, end);
      const auto found = command->get_subcommands([&](const CLI::App *each) { return each->get_name() == name; });
      command = found.empty() ? nullptr : found.front();
      names.remove_prefix(std::min(end + 1, names.size()));
    }
    if (!command)
      continue;
    const std::string before = command->get_footer();
    command->footer(before + (before.empty() ? "" : "\n\n") + "Example:\n" + row.examples);
  }
}

} // namespace ditron::tool
