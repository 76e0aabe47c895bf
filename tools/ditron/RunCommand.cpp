//===- RunCommand.cpp - ditron run --------------------------------------------------------------------------------===//
//
// The options of `ditron run`.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "Command.h"
#include "KernelRun.h"

namespace ditron::tool {

namespace {

constexpr const char *footer = R"(SPEC, the value of an argument:
  3   -0x10   2.5   true   None     literals
  i64:7   fp32:1.5                  literals of a given type
  @x.npy                            an array from a file; {rank} in the path is replaced by the rank
  bf16@x.npy                        words of a file seen as bf16 (or fp16, fp8e5, fp8e4nv); floats are rounded to it
  zeros:fp32[128,64]                an array of zeros; also ones:, arange: and rand:
  symm:@x.npy  symm:zeros:i64[8]    the same at one offset of every rank's symmetric heap
  desc[64,32]@x.npy                 a tensor descriptor of the array, for tiles of 64 x 32; [64,32,nan] pads with NaN
  desc[64,32]:zeros:bf16[100,70]    the same of any array
  (@x.npy, 3, zeros:fp32[4])        a tuple; (x=3, y=@x.npy) a named one, ((1, 2), 3) one in another; its arrays are
                                    called t.0, t.x in --out and --print

Types: i1 i8 i16 i32 i64 u8 u16 u32 u64 fp8e5 fp8e4nv fp16 bf16 fp32 fp64

Examples:
  ditron run add.py:add_kernel --grid 'cdiv(n, BLOCK)' --constexpr BLOCK=128 --arg n=1000 \
      --arg x=@x.npy --arg y=rand:fp32[1000] --arg out=zeros:fp32[1000] --out out=sum.npy
  ditron run ring.py:ring --ranks 4 --arg data=symm:arange:i32[64] --print data --trace ring.json

Exit codes: 0 done; 1 the command line, a file or the kernel's source is wrong; 2 the kernel failed while running
(deadlock, access out of bounds); 3 not enough memory; 4 a bug of Ditron.)";

/// An option that may be given several times, one value each.
CLI::Option *addRepeated(CLI::App *command, const std::string &name, std::vector<std::string> &values,
                         const std::string &type, const std::string &help) {
  return command->add_option(name, values, help)->take_all()->allow_extra_args(false)->type_name(type);
}

} // namespace

void addRunCommand(CLI::App &app, CommandContext &context) {
  CLI::App *command = app.add_subcommand("run", "Compile a kernel and run it on simulated or real GPUs");
  auto options = std::make_shared<RunOptions>();
  command->add_option("kernel", options->kernel, "Kernel file and function: FILE.py:KERNEL; the file - is standard input, the function may be left out if it is the only one")
      ->required()
      ->type_name("FILE.py:KERNEL");
  command
      ->add_option("--target", options->target,
                   "What to run on: sim, cuda (this machine's GPUs), or a full name such as cuda:sm_80")
      ->capture_default_str();
  command->add_option("--ranks", options->ranks, "Number of GPUs")
      ->check(integerBetween(1, 1024))
      ->capture_default_str();
  command->add_option("--grid", options->grid, "Blocks in x, y and z: integer expressions of the arguments")
      ->type_name("X,Y,Z")
      ->capture_default_str();
  command->add_option("--num-warps", options->numWarps, "Warps per block")
      ->check(integerBetween(1, 32))
      ->default_str("4");
  command->add_option("--num-stages", options->numStages, "Stages of pipelined loops")
      ->check(integerBetween(1, 16))
      ->default_str("3");
  command
      ->add_option("--config", options->config,
                   "Which configuration of @triton.autotune to use; `ditron compile --list-configs` shows them")
      ->check(integerBetween(0, 65535))
      ->type_name("N");
  addSourceOptions(command, options->source);
  command->add_flag("--debug", options->debug, "Check assertions of the kernel, and integers for overflow");
  addRepeated(command, "--arg", options->arguments, "NAME=SPEC", "Value of a run-time parameter (see below)");
  addRepeated(command, "--constexpr", options->constexprs, "NAME=VALUE", "Value of a tl.constexpr parameter");
  addRepeated(command, "--out", options->outputs, "NAME=FILE.npy",
              "Write an array after the run; {rank} in the path; TYPE@FILE.npy converts floats");
  addRepeated(command, "--print", options->prints, "NAME", "Print an array after the run");
  command->add_option("--seed", options->seed, "Chooses the interleaving and the random arguments")
      ->check(integerBetween(0, UINT64_MAX))
      ->capture_default_str();
  command->add_option("--sms", options->sms, "Simulated SMs per rank")
      ->check(integerBetween(1, 1024))
      ->capture_default_str();
  addRepeated(command, "--slow-rank", options->slowRanks, "R:FACTOR", "Make a rank slower by a factor");
  command->add_option("--trace", options->trace, "Write a Chrome/Perfetto trace of the run")->type_name("FILE.json");
  command
      ->add_option("--bound-waits", options->boundWaits,
                   "Real GPUs: a wait that takes longer is an error with a report")
      ->check(secondsFromZero())
      ->type_name("SECONDS");
  command->add_option("--time-limit", options->timeLimit, "Longest that the run may take, by the clock on the wall")
      ->check(secondsFromZero())
      ->type_name("SECONDS");
  command->add_flag("--share-gpus", options->shareGpus, "Real GPUs: several ranks on one GPU when there are too few");
  command->add_flag("--cooperative", options->cooperative, "All blocks must be resident at once");
  command->add_flag("--no-bounds-check", options->noBoundsCheck, "Do not check the kernel's memory accesses");
  command->add_flag("--time", options->time, "Print the time from source to loaded code, by stage");
  command->add_flag("--quiet", options->quiet, "Print neither progress nor the summary");
  command->footer(footer);
  command->callback([options, &context] {
    // The run is over, and its progress line gone, before its error is printed.
    KernelRun run(*options, context.knobs);
    const Status status = run.run();
    context.finish(status, run.hasKernelFailed());
  });
}

} // namespace ditron::tool
